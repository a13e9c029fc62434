package bridge

import (
	"errors"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/trunk"
)

// TestPatienceBeginsWithSilence checks for how long a bridge waits for a new connection: for the
// patience after a lost connection, and for the remaining part of it after a silent one.
func TestPatienceBeginsWithSilence(t *testing.T) {
	for _, test := range []struct{ patience, silent, want time.Duration }{
		{10 * time.Second, 0, 10 * time.Second},
		{10 * time.Second, 6 * time.Second, 4 * time.Second},
		{6 * time.Second, 6 * time.Second, leastRemaining},
		{leastRemaining / 2, 6 * time.Second, leastRemaining / 2},
	} {
		b := New(Config{Job: "j", Zipper: 1, Address: "z", Patience: test.patience, SurvivesLoss: true, Resumes: true})
		now := time.Unix(1e9, 0)
		for _, e := range []Event{Offered{Conn: 1, Link: trunk.Link{}}, Pong{Conn: 1}, Begin{},
			Ended{Conn: 1, Cause: errors.New("silent"), Silent: test.silent}} {
			actions, err := b.Handle(now, e)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range actions {
				if arm, ok := a.(action.Arm); ok && arm.Timer.Kind == action.Cut && arm.After != test.want {
					t.Errorf("patience %v, silent for %v: the bridge waits for %v, want %v", test.patience, test.silent, arm.After, test.want)
				}
			}
		}
		if b.State() != Cut {
			t.Errorf("the bridge is %v", b.State())
		}
	}
}

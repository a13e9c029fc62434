package tcp

import (
	"errors"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
)

// TestStoppedPeerIsNotCutOff checks that a peer that does not read, like a stopped one, is not
// taken for one that is cut off, because its kernel answers.
func TestStoppedPeerIsNotCutOff(t *testing.T) {
	l, _ := pair(t)
	b := make([]byte, 1<<20)
	var full time.Time
	for ; full.IsZero() || time.Since(full) < 4*time.Second; time.Sleep(10 * time.Millisecond) {
		if _, err := l.TryWrite(b); err != nil {
			if !errors.Is(err, transport.ErrAgain) {
				t.Fatal(err)
			}
			if full.IsZero() {
				full = time.Now()
			}
		}
		if d, known := l.(transport.Listening).Unheard(); d != 0 || !known {
			t.Fatalf("unheard for %v", d)
		}
	}
	l.Close()
	if d, known := l.(transport.Listening).Unheard(); d != 0 || known {
		t.Errorf("closed: unheard for %v", d)
	}
}

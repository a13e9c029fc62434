package seal

import (
	"encoding/hex"
	"testing"
)

func guest(t *testing.T, id, secret string) *Guest {
	t.Helper()
	g, err := NewGuest(id, secret)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestPass checks that a job's ranks and the forwarder derive the same pass, that another secret or
// forwarder gives another pass, and that an authentication is valid for its text only.
func TestPass(t *testing.T) {
	near, err := NewForwarder([PublicLen]byte{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewForwarder([PublicLen]byte{0, 2})
	if err != nil {
		t.Fatal(err)
	}
	job := guest(t, "j", "s")
	pass, err := job.Pass(near.Public)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := near.Pass(job.Public)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("I am rank 0")
	shown := pass.Show(text)
	if !ours.Good(shown, text[:3], text[3:]) || ours.Good(shown, []byte("I am rank 1")) {
		t.Error("a proof does not fit its text, or fits another one too")
	}
	for what, make := range map[string]func() (*Pass, error){
		"another forwarder":        func() (*Pass, error) { return other.Pass(job.Public) },
		"the job at another":       func() (*Pass, error) { return job.Pass(other.Public) },
		"another secret":           func() (*Pass, error) { return guest(t, "j", "x").Pass(near.Public) },
		"another job, same secret": func() (*Pass, error) { return guest(t, "k", "s").Pass(near.Public) },
	} {
		p, err := make()
		if err != nil {
			t.Fatal(err)
		}
		if p.Good(shown, text) || ours.Good(p.Show(text), text) {
			t.Errorf("%s has the pass", what)
		}
	}
	if _, err := near.Pass([PublicLen]byte{}); err == nil {
		t.Error("a pass that everybody knows")
	}
}

// TestPassIsFixed checks that other releases derive the same pass.
func TestPassIsFixed(t *testing.T) {
	f, err := NewForwarder([PublicLen]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	g := guest(t, "job-1", "hunter2")
	p, err := g.Pass(f.Public)
	if err != nil {
		t.Fatal(err)
	}
	shown := p.Show([]byte("text"))
	if got := hex.EncodeToString(g.Public[:]) + " " + hex.EncodeToString(shown[:]); got != fixedPass {
		t.Errorf("%s, want %s", got, fixedPass)
	}
}

const fixedPass = "cc26414c334f74d482b40777cd8512002f9c73c92e54c497f55743d8f6c35425 fe7cc273f0459761f64b4f772393612c"

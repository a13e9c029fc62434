package agent

import (
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

type question struct{ N int }

type answer struct{ Twice int }

func double(r io.Reader, w io.Writer) error {
	return Serve(r, w, answer{Twice: 1}, func(q question) answer { return answer{Twice: 2 * q.N} })
}

func TestHere(t *testing.T) {
	c := Here(double)
	var a answer
	if err := c.Hello(&a); err != nil || a.Twice != 1 {
		t.Fatalf("hello: %+v, %v", a, err)
	}
	for n := range 3 {
		if err := c.Ask(question{n}, &a); err != nil || a.Twice != 2*n {
			t.Errorf("twice %d is %d, %v", n, a.Twice, err)
		}
	}
	c.Close()
	c.Wait(time.Minute)
	if err := c.Ask(question{1}, &a); err == nil {
		t.Error("an agent that has ended still answers")
	}
}

// TestServeEnds checks that a question which is not JSON ends an agent with an error, and the end
// of its input without one.
func TestServeEnds(t *testing.T) {
	if err := double(strings.NewReader(`{"N":1}`+"\n"), io.Discard); err != nil {
		t.Errorf("at the end: %v", err)
	}
	for _, in := range []string{"no question\n", `{"N":"one"}`, `{"N":1`} {
		if err := double(strings.NewReader(in), io.Discard); err == nil {
			t.Errorf("%q is taken for a question", in)
		}
	}
}

// TestStart checks that lines of login scripts are skipped, and that an agent is killed if it does
// not end when its input does.
func TestStart(t *testing.T) {
	c, err := Start(exec.Command("sh", "-c", `echo Welcome; echo; echo '{"Twice": 7}'; exec sleep 1000`))
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := c.Hello(&a); err != nil || a.Twice != 7 {
		t.Errorf("hello: %+v, %v", a, err)
	}
	c.Close()
	c.Wait(time.Millisecond)
	if err := c.Hello(&a); err == nil {
		t.Error("an agent that was killed still speaks")
	}
	if c, err = Start(exec.Command("/nowhere/agent")); err == nil {
		t.Errorf("started: %v", c)
	}
}

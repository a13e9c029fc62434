package output

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestMergerKeepsLinesWhole(t *testing.T) {
	var out bytes.Buffer
	m := NewMerger(&out)
	var wg sync.WaitGroup
	const sources, count = 8, 200
	for s := range sources {
		wg.Go(func() {
			w := m.Source(nil)
			for i := range count {
				line := fmt.Sprintf("source %d line %d %s\n", s, i, strings.Repeat("x", i%50))
				for _, half := range []string{line[:len(line)/2], line[len(line)/2:]} {
					if _, err := w.Write([]byte(half)); err != nil {
						t.Error(err)
					}
				}
			}
			w.Close()
		})
	}
	wg.Wait()
	next := map[int]int{}
	for l := range strings.Lines(out.String()) {
		var s, i int
		if n, err := fmt.Sscanf(l, "source %d line %d", &s, &i); n != 2 || err != nil || i != next[s] {
			t.Fatalf("line %q of source %d, want number %d", l, s, next[s])
		}
		next[s]++
	}
	for s := range sources {
		if next[s] != count {
			t.Errorf("source %d: %d lines", s, next[s])
		}
	}
}

func TestMergerPassesPromptsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := NewMerger(&out)
		output := func() string { m.mu.Lock(); defer m.mu.Unlock(); return out.String() }
		w := m.Source(func(l []byte) []byte { return append([]byte("[0] "), l...) })
		fmt.Fprint(w, "name? ")
		if output() != "" {
			t.Errorf("too early: %q", output())
		}
		time.Sleep(2 * partialAfter) // in the bubble's time
		synctest.Wait()
		if output() != "[0] name? " {
			t.Errorf("got %q", output())
		}
		fmt.Fprint(w, "Ada\nbye")
		w.Close()
		if output() != "[0] name? Ada\n[0] bye" {
			t.Errorf("got %q", output())
		}
	})
}

// TestLeadingNULIsDropped checks that a NUL at the beginning of a line is dropped, whether text
// follows or not, and that the text after it is edited as a line of its own. A NUL within a line
// stays.
func TestLeadingNULIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := NewMerger(&out)
		w := m.Source(withoutNUL(func(l []byte) []byte { return append([]byte("> "), l...) }))
		fmt.Fprint(w, "prterun has exited\n\x00")
		time.Sleep(2 * partialAfter) // in the bubble's time
		synctest.Wait()
		fmt.Fprint(w, "a\x00b\n\x00")
		w.Close()
		if want := "> prterun has exited\n> a\x00b\n"; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
}

func TestRetag(t *testing.T) {
	mpich := retag("b", []int{0, 1, 5})
	for in, want := range map[string]string{
		"[2] two\n":        "[5] two\n",
		"[3] nobody\n":     "[b] [3] nobody\n",
		"[mpiexec@h] oh\n": "[b] [mpiexec@h] oh\n",
	} {
		if got := string(mpich([]byte(in))); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

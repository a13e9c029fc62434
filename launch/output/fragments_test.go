package output

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// tags returns the fragments of a cluster of two ranks.
func tags(m *Merger, space bool) *fragments {
	return newFragments(tagStdout, space, 2,
		func(native int) io.WriteCloser { return m.Source(tagged("a", []int{4, 5}, native)) })
}

// openTags returns the text that fragments make of Open MPI's output, written in pieces of n bytes.
// Its tags end with a space if the first one does.
func openTags(in string, n int) string {
	var out bytes.Buffer
	m := NewMerger(&out)
	f := tags(m, strings.HasPrefix(in, "[1,0]<stdout>: "))
	for rest := in; rest != ""; {
		k := min(n, len(rest))
		_, _ = f.Write([]byte(rest[:k]))
		rest = rest[k:]
	}
	f.Close()
	return out.String()
}

func TestFragmentsBecomeLines(t *testing.T) {
	long := strings.Repeat("x", 4000)
	for in, want := range map[string]string{
		"[1,1]<stdout>:hello: [x]>:\n":                                            "[5] hello: [x]>:\n",
		"[1,0]<stdout>:\n":                                                        "[4] \n",
		"[1,7]<stdout>:no such rank\n":                                            "[a] [1,7]<stdout>:no such rank\n",
		"mpirun says\n[1,0]<stdout>:b\nmpirun says [1,\n":                         "[a] mpirun says\n[4] b\n[a] mpirun says [1,\n",
		"[1,0]<stdout>:" + long + "[1,0]<stdout>:yz\n":                            "[4] " + long + "yz\n",
		"[1,0]<stdout>:ab[1,1]<stdout>:c\n[1,0]<stdout>:d\n":                      "[5] c\n[4] abd\n",
		"[1,0]<stdout>:no newline [1":                                             "[4] no newline [1",
		"[1,0]<stdout>: a\n[1,1]<stdout>:  b\n[1,0]<stdout>: \n[1,0]<stdout>:c\n": "[4] a\n[5]  b\n[4] \n[a] [1,0]<stdout>:c\n",
	} {
		for n := 1; n <= len(in); n = n*5/4 + 1 {
			if got := openTags(in, n); got != want {
				t.Errorf("%.60q in pieces of %d bytes becomes %.60q, want %.60q", in, n, got, want)
			}
		}
		if got := openTags(in, len(in)); got != want {
			t.Errorf("%.60q becomes %.60q, want %.60q", in, got, want)
		}
	}
}

// TestOthersTagsStay checks that text that looks like a tag and cannot be one stays.
func TestOthersTagsStay(t *testing.T) {
	const in = "[1,0]<stdout>:a log of [1,1]<stderr>:x and [1,2]<stdout>:y\n"
	if got := openTags(in, len(in)); got != "[4] a log of [1,1]<stderr>:x and [1,2]<stdout>:y\n" {
		t.Errorf("got %q", got)
	}
}

// slow is a writer that takes long.
type slow struct{ bytes.Buffer }

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(2 * partialAfter)
	return s.Buffer.Write(p)
}

// TestSlowReaderDoesNotCutLines checks that a line is not cut while the reader keeps the merger
// waiting, because the rest of the line may be waiting as well.
func TestSlowReaderDoesNotCutLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out slow
		m := NewMerger(&out)
		w := m.Source(nil)
		_, _ = w.Write([]byte("one line\n"))
		if m.freed != time.Now() {
			t.Error("a reader that kept us waiting is not noticed")
		}
		m.freed = time.Time{}
		_, _ = w.Write([]byte("half a "))
		time.Sleep(partialAfter / 2)
		m.mu.Lock()
		m.freed = time.Now() // as after a write for another source, for which the lock cannot be held here
		m.mu.Unlock()
		time.Sleep(partialAfter * 3 / 4)
		_, _ = w.Write([]byte("line\n"))
		if got, want := out.String(), "one line\nhalf a line\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestInterruptedLineGetsItsTagAgain checks that a prompt is passed on, and that a line that others
// interrupt has its tag again.
func TestInterruptedLineGetsItsTagAgain(t *testing.T) {
	for want, pieces := range map[string][]string{
		"[5] yes or no? [": {"[1,1]<stdout>:yes or no? ["},
		"[4] solving ...[5] hello\n[4]  more done\n": {"[1,0]<stdout>:solving ...", "[1,1]<stdout>:hello\n",
			"[1,0]<stdout>: more", "[1,0]<stdout>: done\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			m := NewMerger(&out)
			f := tags(m, false)
			for _, piece := range pieces {
				_, _ = f.Write([]byte(piece))
				time.Sleep(3 * partialAfter) // in the bubble's time
			}
			synctest.Wait()
			m.mu.Lock()
			got := out.String()
			m.mu.Unlock()
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			f.Close()
		})
	}
}

package output

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	dashes  = "--------------------------------------------------------------------------\n"
	primary = dashes + "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-direction, the job has been aborted.\n" + dashes
	exited  = dashes + "mpirun.openmpi detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[9081,1],0]\n  Exit code:    3\n" + dashes
	killed  = dashes + "mpirun noticed that process rank 0 with PID 0 on node vm exited on signal 11 (Segmentation fault).\n" + dashes
	hydras  = "===================================================================================\n" +
		"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 20326 RUNNING AT vm\n=   EXIT CODE: 11\n" +
		"===================================================================================\n" +
		"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)\n" +
		"This typically refers to a problem with your application.\nPlease see the FAQ page for debugging suggestions\n"
	slots = dashes + "There are not enough slots available in the system to satisfy the 9\nslots that were requested by the application:\n" + dashes
)

// TestBoxesAreKeptAndTheRestPasses checks that a launcher's messages on the end of its processes
// are kept, and that all others pass in order.
func TestBoxesAreKeptAndTheRestPasses(t *testing.T) {
	tagged := strings.ReplaceAll(exited, "\n", "\n[a] ")
	tagged = "[a] " + strings.TrimSuffix(tagged, "[a] ")
	for name, c := range map[string]struct{ in, passes, kept string }{
		"Open MPI, a status":         {"x\n" + primary + exited + "y\n", "x\ny\n", primary + exited},
		"Open MPI, a signal":         {primary + "x\n" + killed, "x\n", primary + killed},
		"with tags":                  {"[0] x\n" + tagged, "[0] x\n", tagged},
		"MPICH":                      {"x\n\n" + hydras + "y\n", "x\n\ny\n", hydras},
		"cause of a failed launcher": {slots + exited, slots, exited},
		"a line of the program's":    {dashes + "x\n" + dashes + "y\n", dashes + "x\n" + dashes + "y\n", ""},
		"unfinished box at the end":  {"x\n" + dashes, "x\n" + dashes, ""},
		"box without its end":        {strings.TrimSuffix(exited, dashes), strings.TrimSuffix(exited, dashes), ""},
		"too long for a box": {strings.TrimSuffix(exited, dashes) + strings.Repeat("x\n", 2*longestBox),
			strings.TrimSuffix(exited, dashes) + strings.Repeat("x\n", 2*longestBox), ""},
		"line of a rank inside": {strings.Replace(primary, "a non", "MMPI: virtual rank 2: y\na non", 1), "MMPI: virtual rank 2: y\n",
			primary},
		"a frame of the program's": {strings.Repeat("=", 83) + "\nx\n" + hydras, strings.Repeat("=", 83) + "\nx\n", hydras},
	} {
		for _, size := range []int{1 << 20, 7} { // written at once, and in pieces
			var out bytes.Buffer
			var b Boxes
			w := b.Stderr(NewMerger(&out), nil)
			if strings.Contains(c.in, "=====") {
				w = b.Stdout(NewMerger(&out))
			}
			for rest := c.in; rest != ""; {
				n := min(size, len(rest))
				_, _ = io.WriteString(w, rest[:n])
				rest = rest[n:]
			}
			w.Close()
			if out.String() != c.passes || b.Text() != c.kept {
				t.Errorf("%s, in pieces of %d bytes: passes\n%skept\n%s", name, size, &out, b.Text())
			}
		}
	}
}

// TestLoneTopOfABoxPasses checks that a line that looks like the top of a box passes after a short
// while, once, if nothing follows it. The box of a slow launcher is still kept.
func TestLoneTopOfABoxPasses(t *testing.T) {
	for name, c := range map[string]struct{ rest, passes, kept string }{
		"lines of the program": {"x\n" + dashes, dashes + "x\n" + dashes, ""},
		"a slow launcher":      {strings.TrimPrefix(exited, dashes) + "x\n", dashes + "x\n", exited},
		"box without its end":  {strings.TrimSuffix(strings.TrimPrefix(exited, dashes), dashes), strings.TrimSuffix(exited, dashes), ""},
		"empty output":         {"", dashes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				var b Boxes
				m := NewMerger(&out)
				passed := func() string { m.mu.Lock(); defer m.mu.Unlock(); return out.String() }
				w := b.Stderr(m, nil)
				_, _ = io.WriteString(w, dashes)
				if passed() != "" {
					t.Errorf("too early: %q", passed())
				}
				time.Sleep(2 * partialAfter) // in the bubble's time
				synctest.Wait()
				if passed() != dashes {
					t.Errorf("the line alone: passes %q", passed())
				}
				_, _ = io.WriteString(w, c.rest)
				w.Close()
				time.Sleep(2 * partialAfter)
				synctest.Wait()
				if passed() != c.passes || b.Text() != c.kept {
					t.Errorf("passes\n%skept\n%s", passed(), b.Text())
				}
			})
		})
	}
}

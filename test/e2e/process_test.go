package e2e

import (
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/marked"
)

// TestLeftoverProcessesAreKilled checks that the processes which a command leaves behind are gone
// after its test.
func TestLeftoverProcessesAreKilled(t *testing.T) {
	b := New(t)
	var mark string
	t.Run("command", func(t *testing.T) {
		b := *b
		b.T = t
		p := b.Start(nil, nil, "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &")
		b.OK(p.Wait())
		if mark = p.mark; len(marked.Processes(mark)) == 0 {
			t.Error("it has left nothing behind")
		}
	})
	b.WaitFor(10*time.Second, "the processes that it left behind to end", func() bool { return len(marked.Processes(mark)) == 0 })
}

package slurm

import (
	"strings"
	"testing"
)

// TestCancelledClusterIsLost checks that a job that outlives clusters goes on when the half of one
// is cancelled, and that zipper submit succeeds and names what was lost.
func TestCancelledClusterIsLost(t *testing.T) {
	p := newPair(t)
	text := p.jobFile("lost", p.path("lost-{mpi}")+" 2", "on_loss: continue")
	u := p.start("lost", strings.Replace(text, "env: {", "env: {LOST_BY: cut, ", 1))
	p.until("b's ranks wait for their loss", func() bool { return strings.Count(u.out.String(), "is to be lost") == 2 })
	b := p.job(u, "b")
	b.Cancel()
	err := u.cmd.Wait()
	if err != nil || !strings.Contains(u.out.String(), "2 ranks go on") ||
		!strings.Contains(u.errs.String(), "cluster b is lost: Slurm job "+b.ID) {
		t.Errorf("%v\n%s\n%s", err, u.out.String(), u.errs.String())
	}
}

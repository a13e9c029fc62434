package jobenv

import (
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

func TestOrigin(t *testing.T) {
	for _, c := range []struct{ environ, want string }{
		{"", "user=1000"},
		{"USER=alice", "user=alice"},
		{"LOGNAME=bob SLURM_JOB_ID=17", "user=bob slurm=17"},
		{"USER=a PBS_JOBID=12.server", "user=a pbs=12.server"},
		{"USER=a LSB_JOBID=3", "user=a lsf=3"},
		{"USER=a JOB_ID=5", "user=a"}, // many programs set that variable
		{"USER=a JOB_ID=5 SGE_ROOT=/opt/sge", "user=a gridengine=5"},
		{"USER=a ZIPPER_ORIGIN=user=c", "user=c"},
	} {
		get := func(name string) string {
			for _, v := range strings.Fields(c.environ) {
				if value, ok := strings.CutPrefix(v, name+"="); ok {
					return value
				}
			}
			return ""
		}
		if got := Origin(get, 1000); got != c.want {
			t.Errorf("%s: %q, want %q", c.environ, got, c.want)
		}
	}
	hostile := func(string) string { return "x\n y\xff" + strings.Repeat("ü", 1000) }
	if s := Origin(hostile, 0); len(s) > wire.MaxName || strings.ToValidUTF8(s, "") != s {
		t.Errorf("%d bytes: %q", len(s), s)
	}
}

package jobcmd

import (
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/launch/doctor"
)

// TestDoctorWarnsOfCrowdedTable checks that doctor warns once nine tenths of the kernel's table of
// connections are taken, and not on a host that tracks none.
func TestDoctorWarnsOfCrowdedTable(t *testing.T) {
	for _, c := range []struct {
		n, most int
		warns   bool
	}{{0, 0, false}, {89, 100, false}, {90, 100, true}, {262144, 262144, true}} {
		if got := crowded(c.n, c.most); got != c.warns {
			t.Errorf("%d of %d: %v", c.n, c.most, got)
		}
	}
	if f := crowdedFinding(90, 100); f.Level != doctor.Warn || !strings.Contains(f.Detail, "90 of at most 100 connections") {
		t.Errorf("%+v", f)
	}
}

package benchcmd

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/report"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/launch/spec"
)

// TestSignalEndsAReport checks that a signal ends a report's measurements at once: no other part is
// tried, and the reason is the signal alone.
func TestSignalEndsAReport(t *testing.T) {
	set, err := reportSets("quick")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(clikit.Interrupted{Signal: syscall.SIGINT})
	jobs := 0
	m := &reportMeasurement{ctx: ctx, runner: &drive.Runner{Program: "/bin/true"}, set: set, begin: time.Now(),
		data: &report.Data{},
		targets: func(a, b int) []drive.Target {
			jobs++
			return []drive.Target{drive.Native(spec.OpenMPI, a+b)}
		}}
	err = m.all()
	var sig clikit.Interrupted
	if !errors.As(err, &sig) || err.Error() != sig.Error() || jobs != 1 {
		t.Errorf("ended with %v after %d parts", err, jobs)
	}
	if d := m.data; len(d.Sizes)+len(d.Ranks)+len(d.NPB) != 0 {
		t.Errorf("measured nothing, has %+v", d)
	}
}

// TestFailedKernelDoesNotStopAReport checks that the others are measured after a kernel has failed,
// and that the failure is reported.
func TestFailedKernelDoesNotStopAReport(t *testing.T) {
	set, err := reportSets("quick")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	m := &reportMeasurement{ctx: context.Background(), runner: &drive.Runner{Program: "/bin/true"}, set: set,
		begin: time.Now(), data: &report.Data{},
		targets: func(a, b int) []drive.Target {
			tried++
			return []drive.Target{{Name: "broken", Job: func() (*spec.Job, error) { return &spec.Job{}, nil }}}
		}}
	if err := m.kernels(); err == nil || tried != len(reportKernels) {
		t.Errorf("tried %d kernels of %d: %v", tried, len(reportKernels), err)
	}
}

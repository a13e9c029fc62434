package drive

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/spec"
)

// TestBenchmarksOwnErrorIsTheReason checks that the reason of a failure is the benchmark's error,
// not the launcher's banner after it, and that it is there once although every rank prints it.
func TestBenchmarksOwnErrorIsTheReason(t *testing.T) {
	const banner = "-----\nmpirun detected that one or more processes exited with non-zero status\n  Process name: [[1,1],0]\n  Exit code:    1\n-----\n"
	output := "zipper-mpibench: npb: CG runs on a power of two of ranks, not on 3\n"
	if got := why(output + output + banner); got != ": npb: CG runs on a power of two of ranks, not on 3" {
		t.Errorf("%q", got)
	}
	if got := why("Segmentation fault\n" + banner); !strings.Contains(got, "Segmentation fault") ||
		!strings.Contains(got, "Exit code") {
		t.Errorf("a program without an own error: %q", got)
	}
}

// killed returns a target whose job ends as if a signal had killed a process: its launcher prints
// that, and the processes print output.
func killed(t *testing.T, output string) Target {
	const banner = "--------------------------------------------------------------------------\n" +
		"Primary job  terminated normally, but 1 process returned\n" +
		"a non-zero exit code. Per user-direction, the job has been aborted.\n" +
		"--------------------------------------------------------------------------\n" +
		"--------------------------------------------------------------------------\n" +
		"mpirun noticed that process rank 3 with PID 7 on node n1 exited on signal 9 (Killed).\n" +
		"--------------------------------------------------------------------------\n"
	rsh := filepath.Join(t.TempDir(), "rsh")
	script := "#!/bin/sh\ncat >&2 <<'END'\n" + output + banner + "END\nexit 137\n"
	if err := os.WriteFile(rsh, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return Target{"t", func() (*spec.Job, error) {
		return &spec.Job{Rsh: []string{rsh}, Clusters: []spec.Cluster{{Name: "a", Ranks: 4, Launcher: "ssh", Login: "h"}}}, nil
	}}
}

// TestErrorNamesTheSignal checks that the error of a benchmark of which a process was killed names
// the signal and the launcher's information about the process, unless the benchmark has printed why
// it failed.
func TestErrorNamesTheSignal(t *testing.T) {
	r := Runner{Program: "p"}
	for output, want := range map[string]string{"": "rank 3 with PID 7 on node n1",
		"zipper-mpibench: no memory\n": "exit status 137 (SIGKILL): no memory"} {
		_, _, err := r.run(context.Background(), killed(t, output), nil, "latency")
		if err == nil || !strings.Contains(err.Error(), "exit status 137 (SIGKILL)") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", output, err, want)
		}
	}
}

// TestFailureIsOneBoundedLine checks that the error of a failed job is one line of bounded length,
// in which the launcher's frames leave room for their content.
func TestFailureIsOneBoundedLine(t *testing.T) {
	run := func(ctx context.Context, output string) error {
		target := killed(t, output)
		job, err := target.Job()
		if err != nil {
			t.Fatal(err)
		}
		job.Program = []string{"p"}
		var errs bytes.Buffer
		o, err := launch.Run(ctx, job, launch.Options{Stdout: &bytes.Buffer{}, Stderr: &errs})
		return Failure(ctx, o, err, errs.String())
	}
	for output, want := range map[string]string{"": "signal 9 (Killed).", "x = 3\ny\n": "(SIGKILL): x = 3 y Primary ",
		strings.Repeat("x", 2*longestReason): "x ..."} {
		err := run(context.Background(), output)
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n") ||
			len(err.Error()) > longestReason+100 {
			t.Errorf("%q: %v, want %q", output, err, want)
		}
	}
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(late)
	if err := run(ctx, ""); !errors.Is(err, late) {
		t.Errorf("after the end of its context: %v", err)
	}
	if err := Failure(context.Background(), launch.Outcome{}, nil, "a warning"); err != nil {
		t.Errorf("of a good job: %v", err)
	}
}

func comparison(rounds int) *Comparison {
	c := &Comparison{Benchmark: "latency", Unit: "us", Targets: []string{"zipped", "native"}, Ranks: 2, Rounds: rounds,
		Rows: []Sizes{{Size: 8, Values: make([][]float64, 2)}}}
	for i := range rounds {
		c.Rows[0].Values[0] = append(c.Rows[0].Values[0], 40+float64(i)/8)
		c.Rows[0].Values[1] = append(c.Rows[0].Values[1], 20+float64(i)/16)
	}
	c.test()
	return c
}

// TestFewRoundsClaimNothing checks that p is always printed, and that with too few rounds for an
// interval or a test the table says so and claims nothing.
func TestFewRoundsClaimNothing(t *testing.T) {
	for rounds, want := range map[int]string{1: "2.000 - too few rounds", 3: "2.000 - too few rounds",
		4: "2.000 - p = 0.0286", 6: "2.000 2.000 - 2.000 p = 0.00216"} {
		c := comparison(rounds)
		s := OverRanks([]*Comparison{c}, "latency", 8)
		for what, table := range map[string]func(*strings.Builder) error{
			"compare": func(b *strings.Builder) error { return c.Table(b) },
			"scale":   func(b *strings.Builder) error { return s.Table(b) },
		} {
			var b strings.Builder
			if err := table(&b); err != nil || !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
				t.Errorf("%s, %d rounds: %v, want %q in\n%s", what, rounds, err, want, &b)
			}
		}
	}
	same := comparison(6)
	same.Rows[0].Values[1], same.Rows[0].Against = same.Rows[0].Values[0], nil
	same.test()
	var b strings.Builder
	if err := same.Table(&b); err != nil || !strings.Contains(b.String(), "p = 1, no difference shown") {
		t.Errorf("%v\n%s", err, &b)
	}
}

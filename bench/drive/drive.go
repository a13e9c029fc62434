// Package drive runs the MPI benchmarks (the program zipper-mpibench) on targets, which are jobs: a
// zipped one, a native one, a routed one. It compares targets by running them in turn.
package drive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/bench/netgauge"
	"github.com/leidenzipper/zipper/bench/npb"
	"github.com/leidenzipper/zipper/bench/osu"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Target is a kind of job in which a benchmark can run.
type Target struct {
	Name string
	// Job returns a new description each time, without a program.
	Job func() (*spec.Job, error)
}

// Native returns the target of one ordinary MPI job of n ranks on this host.
func Native(mpi spec.MPI, n int) Target {
	return Target{"native", func() (*spec.Job, error) {
		return &spec.Job{Clusters: []spec.Cluster{{Name: "native", Ranks: n, MPI: mpi}}}, nil
	}}
}

// Runner starts benchmarks. It is not safe for concurrent use, because measurements must not
// overlap.
type Runner struct {
	// Program is the path of zipper-mpibench with {mpi} for the library's name.
	Program string
	// Options has StartForwarder and the writer for errors; the runner sets Stdout.
	Options launch.Options
}

// Program returns the path of zipper-mpibench beside the running executable; the error says how to
// build it.
func Program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	pattern := filepath.Join(filepath.Dir(self), "zipper-mpibench-{mpi}")
	for _, m := range []spec.MPI{spec.OpenMPI, spec.MPICH} {
		if _, err := os.Stat(strings.ReplaceAll(pattern, "{mpi}", string(m))); err == nil {
			return pattern, nil
		}
	}
	return "", fmt.Errorf("there is no zipper-mpibench-openmpi or -mpich beside %s: run scripts/build", self)
}

// run starts the program on a target and returns the output of rank 0. words name the benchmark,
// also in errors. If ctx has ended, its cause is the error.
func (r *Runner) run(ctx context.Context, t Target, flags []string, words ...string) ([]byte, launch.Outcome, error) {
	var out bytes.Buffer
	o, err := r.runTo(ctx, &out, t, flags, words...)
	if err != nil {
		return nil, o, err
	}
	return out.Bytes(), o, nil
}

// runTo is like run, but copies the output of rank 0 to stdout while it runs.
func (r *Runner) runTo(ctx context.Context, stdout io.Writer, t Target, flags []string,
	words ...string) (launch.Outcome, error) {
	job, err := t.Job()
	if err != nil {
		return launch.Outcome{}, err
	}
	job.Program = slices.Concat([]string{r.Program}, flags, words)
	var errs bytes.Buffer
	o := r.Options
	o.Stdout, o.Stderr = stdout, &errs
	if r.Options.Stderr != nil {
		o.Stderr = io.MultiWriter(&errs, r.Options.Stderr)
	}
	res, err := launch.Run(ctx, job, o)
	if err == nil && res.Status != 0 {
		err = errors.New(launch.DescribeStatus(res.Status))
	}
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil:
		return res, context.Cause(ctx)
	}
	return res, fmt.Errorf("%s on %s: %w%s", strings.Join(words, " "), t.Name, err, why(errs.String()+res.Launcher))
}

// why selects the benchmark's own errors from standard error, each once, because every rank may
// print it. The launcher's banner after them is left out. If there are none, why returns the last
// lines.
func why(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	var own []string
	for _, l := range lines {
		if _, text, ok := strings.Cut(l, "zipper-mpibench: "); ok && !slices.Contains(own, text) {
			own = append(own, text)
		}
	}
	if own != nil {
		return ": " + strings.Join(own, "; ")
	}
	return "\n" + strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// Failure returns the error of a job for which launch.Run returned o and err and which printed errs
// on standard error, in one line for a table. It is nil if the job succeeded. If ctx has ended, the
// error is the cause of that.
func Failure(ctx context.Context, o launch.Outcome, err error, errs string) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return errors.New(OneLine(err.Error()))
	case o.Status != 0:
		return fmt.Errorf("%s: %s", launch.DescribeStatus(o.Status), OneLine(errs+o.Launcher))
	}
	return nil
}

// frame matches the lines that launchers draw around their messages.
var frame = regexp.MustCompile(`(?m)^(?:-{20,}|={20,})$`)

// OneLine returns the beginning of s in one line, without frames, for a cell of a table or a line
// below it.
func OneLine(s string) string {
	s = strings.Join(strings.Fields(frame.ReplaceAllString(s, "")), " ")
	if len(s) > longestReason {
		s = s[:longestReason] + " ..."
	}
	return s
}

func osuFlags(format string, o osu.Options) []string {
	return []string{"osu", "--format", format, "--min", strconv.Itoa(o.MinSize), "--max", strconv.Itoa(o.MaxSize),
		"--window", strconv.Itoa(o.Window),
		"--reps", strconv.Itoa(o.Rule.Max), "--warmup", strconv.Itoa(o.Warmup), "--rep-seconds",
		strconv.FormatFloat(o.RepSeconds, 'g', -1, 64)}
}

// OSUTable runs an OSU-style benchmark and writes its table to w, each line as soon as it is
// complete.
func (r *Runner) OSUTable(ctx context.Context, w io.Writer, t Target, o osu.Options, name string) error {
	_, err := r.runTo(ctx, w, t, osuFlags("table", o), name)
	return err
}

// OSU runs OSU-style benchmarks, one after the other in one job.
func (r *Runner) OSU(ctx context.Context, t Target, o osu.Options,
	names ...string) ([]*osu.Result, launch.Outcome, error) {
	out, outcome, err := r.run(ctx, t, osuFlags("json", o), names...)
	if err != nil {
		return nil, outcome, err
	}
	var all []*osu.Result
	for line := range bytes.Lines(out) {
		res := &osu.Result{}
		if json.Unmarshal(line, res) == nil && res.Name != "" { // launchers may print lines of their own
			all = append(all, res)
		}
	}
	if len(all) != len(names) {
		return nil, outcome, fmt.Errorf("%s on %s: %d results for %d benchmarks", strings.Join(names, " "), t.Name,
			len(all), len(names))
	}
	return all, outcome, nil
}

// Matrix runs a kernel on a target of several clusters and also returns the number of bytes that
// each rank sent each other, [from][to], from start to end.
func (r *Runner) Matrix(ctx context.Context, t Target, kernel, class string) (npb.Result, launch.Outcome, [][]int64,
	error) {
	dir, err := os.MkdirTemp("", "zipper-matrix")
	if err != nil {
		return npb.Result{}, launch.Outcome{}, nil, err
	}
	defer os.RemoveAll(dir)
	recording := *r
	recording.Options.Record = filepath.Join(dir, "trace")
	res, out, err := recording.NPB(ctx, t, kernel, class)
	if err != nil {
		return res, out, nil, err
	}
	recorded, err := trace.ReadFile(recording.Options.Record)
	if err != nil {
		return res, out, nil, err
	}
	bytes := make([][]int64, recorded.Ranks())
	for i := range bytes {
		bytes[i] = make([]int64, len(bytes))
	}
	for pair, n := range recorded.Matrix() {
		bytes[pair[0]][pair[1]] = n
	}
	return res, out, bytes, nil
}

// NPB runs a kernel.
func (r *Runner) NPB(ctx context.Context, t Target, kernel, class string) (npb.Result, launch.Outcome, error) {
	var res npb.Result
	out, outcome, err := r.run(ctx, t, []string{"npb", "--format", "json"}, kernel, class)
	if err == nil {
		if err = json.Unmarshal(lastLine(out), &res); err != nil {
			err = fmt.Errorf("%s %s on %s: unreadable result: %w", kernel, class, t.Name, err)
		}
	}
	return res, outcome, err
}

// Net runs a pattern over an MPI module on the ranks of a target.
func (r *Runner) Net(ctx context.Context, t Target, pattern, module string, o netgauge.Options) (*netgauge.Report,
	launch.Outcome, error) {
	out, outcome, err := r.run(ctx, t, []string{"net", "--reps", strconv.Itoa(o.Reps), "--seed",
		strconv.FormatUint(o.Seed, 10)}, pattern, module)
	rep := &netgauge.Report{}
	if err == nil {
		if err = json.Unmarshal(lastLine(out), rep); err != nil {
			err = fmt.Errorf("%s over %s on %s: unreadable result: %w", pattern, module, t.Name, err)
		}
	}
	return rep, outcome, err
}

// lastLine returns the result, which follows the launchers' output.
func lastLine(b []byte) []byte {
	b = bytes.TrimSpace(b)
	return b[bytes.LastIndexByte(b, '\n')+1:]
}

package contend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/contention/calibrate"
	"github.com/leidenzipper/zipper/contention/pattern"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
	"github.com/leidenzipper/zipper/simulation/play"
)

// Recorded is a run of a NAS kernel in the lab, a rank on each host, with the results of simulating
// its recording.
type Recorded struct {
	Kernel string `json:"kernel"`
	Class  string `json:"class"`
	// Rate is the limit of all links.
	Rate string `json:"rate"`
	// Trace is the name of the recording, beside the report.
	Trace string  `json:"trace"`
	Whole float64 `json:"whole_s"`
	// Timed is the part of Whole that the kernel itself measures.
	Timed    float64 `json:"timed_s"`
	Messages int     `json:"messages"`
	Bytes    int64   `json:"bytes"`
	Processors
	// Simulated is the whole time of the recording in virtual time, by the rate at which the
	// platform was calibrated.
	Simulated map[string]float64 `json:"simulated_s"`
}

// PlatformFile returns the name of the file with the calibration at a rate.
func PlatformFile(rate string) string { return "platform-" + rate + ".yaml" }

// Kernels calibrates the lab at each of the rates and runs every kernel some times with a
// recording. Its files are in dir.
func (l *Lab) Kernels(ctx context.Context, r *drive.Runner, dir string, rates, kernels []string, class string,
	rounds int, o Options, each func(Recorded)) (list []Recorded, err error) {
	for _, rate := range rates {
		if err := l.lab.Shape(ctx, rate); err != nil {
			return list, err
		}
		samples, err := Calibrate(ctx, &l.Site, o)
		if err != nil {
			return list, err
		}
		f, err := os.Create(filepath.Join(dir, PlatformFile(rate)))
		if err != nil {
			return list, err
		}
		_, err = calibrate.Write(f, samples)
		if err := errors.Join(err, f.Close()); err != nil {
			return list, err
		}
		for round := range rounds {
			for _, kernel := range kernels {
				if err := context.Cause(ctx); err != nil {
					return list, err
				}
				x := Recorded{Kernel: kernel, Class: class, Rate: rate,
					Trace: fmt.Sprintf("%s-%s-%s-%d.trace", kernel, class, rate, round+1)}
				if err := l.record(ctx, r, dir, &x); err != nil {
					return list, err
				}
				list = append(list, x)
				if each != nil {
					each(x)
				}
			}
		}
	}
	return list, nil
}

// record runs a kernel with a recording.
func (l *Lab) record(ctx context.Context, r *drive.Runner, dir string, x *Recorded) error {
	recording := *r
	recording.Options.Record = filepath.Join(dir, x.Trace)
	before, err := l.usage()
	if err != nil {
		return err
	}
	t := l.lab.Zipped("zipped", len(l.Clusters[0].Hosts), len(l.Clusters[1].Hosts), nil)
	result, _, err := recording.NPB(ctx, t, x.Kernel, x.Class)
	if err != nil {
		return err
	}
	after, err := l.usage()
	if err != nil {
		return err
	}
	x.Processors, x.Timed = after.since(before), result.Seconds
	if !result.Verified {
		return fmt.Errorf("%s %s: the result is wrong: %s", x.Kernel, x.Class, result.Detail)
	}
	recorded, err := trace.ReadFile(recording.Options.Record)
	if err != nil {
		return err
	}
	x.Messages = len(recorded.Messages)
	for _, m := range recorded.Messages {
		x.Bytes += m.Bytes
		x.Whole = max(x.Whole, float64(m.End)/1e9)
	}
	return nil
}

// Simulate plays the recording on the platform of each of some rates, with the gaps between its
// messages as computing. draw, if not nil, gets the time line on the platform of its own rate.
func (x *Recorded) Simulate(dir string, rates []string,
	draw func(picture func(w io.Writer, format string) error) error) error {
	t, err := trace.ReadFile(filepath.Join(dir, x.Trace))
	if err != nil {
		return err
	}
	x.Simulated = map[string]float64{}
	for _, rate := range rates {
		f, err := os.Open(filepath.Join(dir, PlatformFile(rate)))
		if err != nil {
			return err
		}
		p, err := platform.Read(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		places, ok := pattern.Recorded(t, p)
		if !ok {
			return fmt.Errorf("%s: the platform has no room for the ranks of %s", f.Name(), x.Trace)
		}
		messages, err := pattern.Replay(t, places, big.NewRat(1, 1))
		if err != nil {
			return fmt.Errorf("%s: %w", x.Trace, err)
		}
		r, err := play.Run(p, messages, play.Options{})
		if err != nil {
			return fmt.Errorf("%s: %w", x.Trace, err)
		}
		x.Simulated[rate] = r.Report.Makespan
		if draw != nil && rate == x.Rate {
			if err := draw(r.Report.Picture); err != nil {
				return err
			}
		}
	}
	return nil
}

// Measured returns the whole times of the other runs of the same kernel at a rate. If there is no
// other and the run itself had that rate, it returns the run's own time.
func (x *Recorded) Measured(list []Recorded, rate string) (times []float64) {
	for i := range list {
		if o := &list[i]; o.Kernel == x.Kernel && o.Class == x.Class && o.Rate == rate && o.Trace != x.Trace {
			times = append(times, o.Whole)
		}
	}
	if len(times) == 0 && rate == x.Rate {
		times = []float64{x.Whole}
	}
	return times
}

// Error returns the error of the recording's simulated time at a rate against the mean of the other
// runs; ok is false if there are none.
func (x *Recorded) Error(list []Recorded, rate string) (e float64, ok bool) {
	times := x.Measured(list, rate)
	sum := 0.0
	for _, t := range times {
		sum += t
	}
	s, ok := x.Simulated[rate]
	return s*float64(len(times))/sum - 1, ok && len(times) > 0
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/bench/measure"
	"github.com/leidenzipper/zipper/bench/stat"
)

// The steps of the plan longhaul.

// long runs one operation of the MPI program at one size, on so many ranks in each cluster, and
// returns its points.
func (p *longhaul) long(ctx context.Context, m *measurement, t target, ranks int, options []string, operation string,
	bytes int) ([]point, error) {
	// A slow job has a window to send after its time.
	limit := p.warm + p.seconds + 2*time.Minute
	return m.job(ctx, t.job(ranks, ranks), limit, options, part{operation, []int{bytes}})
}

// stream measures streams of messages of some bytes, between so many pairs of ranks. Several pairs
// also have a row of their fairness.
func (p *longhaul) stream(m *measurement, row measure.Row, operation string, bytes, pairs int) step {
	s := step{name: row.Name, rows: []measure.Row{row}}
	if pairs > 1 {
		s.rows = append(s.rows, measure.Fairness(row))
	}
	s.run = func(ctx context.Context, t target) (samples []sample, err error) {
		var rates []float64
		if t.streams > 0 {
			rates, err = m.tcp(ctx, t.streams, p.warm, p.seconds)
		} else {
			var points []point
			options := []string{"-w", seconds(p.warm), "-s", seconds(p.seconds), "-b", strconv.Itoa(p.window)}
			if points, err = p.long(ctx, m, t, pairs, options, operation, bytes); err == nil {
				rates = points[0].values
			}
		}
		if err != nil {
			return nil, err
		}
		total := 0.0
		for _, rate := range rates {
			total += rate
		}
		samples = []sample{{row, total}}
		if pairs > 1 {
			samples = append(samples, sample{measure.Fairness(row), stat.Jain(rates)})
		}
		return samples, nil
	}
	return s
}

// lossy does a step while the long link loses a share of the packets.
func lossy(m *measurement, loss string, s step) step {
	run := s.run
	s.run = func(ctx context.Context, t target) ([]sample, error) {
		if err := m.lab.Line(ctx, "set", "loss="+loss); err != nil {
			return nil, err
		}
		samples, err := run(ctx, t)
		return samples, errors.Join(err, m.lab.Line(context.WithoutCancel(ctx), "set", "loss=0"))
	}
	return s
}

// small measures when a message of 8 B arrives.
func (p *longhaul) small(m *measurement) step {
	return step{name: measure.Small.Name, rows: []measure.Row{measure.Small},
		run: func(ctx context.Context, t target) ([]sample, error) {
			arrives, _, err := p.block(ctx, m, t, 8)
			if err != nil {
				return nil, err
			}
			return []sample{{measure.Small, stat.Median(arrives[2:]) / 1e3}}, nil
		}}
}

// large measures when a blocking send of 1 MiB arrives and when it returns.
func (p *longhaul) large(m *measurement) step {
	return step{name: measure.Arrives.Name, rows: []measure.Row{measure.First, measure.Arrives, measure.Returns},
		run: func(ctx context.Context, t target) ([]sample, error) {
			arrives, returns, err := p.block(ctx, m, t, 1<<20)
			if err != nil {
				return nil, err
			}
			return []sample{{measure.Arrives, stat.Median(arrives[2:]) / 1e3}, {measure.First, arrives[0] / 1e3},
				{measure.Returns, stat.Median(returns[2:]) / 1e3}}, nil
		}}
}

// block runs blocking sends. It returns for each, in us, when the message arrived and when MPI_Send
// returned; the first two of them warm up.
func (p *longhaul) block(ctx context.Context, m *measurement, t target, bytes int) (arrives, returns []float64, err error) {
	points, err := p.long(ctx, m, t, 1, []string{"-c", strconv.Itoa(p.count + 2)}, "block", bytes)
	if err != nil {
		return nil, nil, err
	}
	for _, at := range points {
		if at.operation == "block.returns" {
			returns = at.values
		} else {
			arrives = at.values
		}
	}
	if len(arrives) < 3 || len(returns) < 3 {
		return nil, nil, errors.New("no times")
	}
	return arrives, returns, nil
}

// collective measures from a common start until the last rank's end, on 4+4 ranks.
func (p *longhaul) collective(m *measurement, name string, bytes int, row measure.Row) step {
	return step{name: row.Name, rows: []measure.Row{row},
		run: func(ctx context.Context, t target) ([]sample, error) {
			points, err := p.long(ctx, m, t, 4, []string{"-c", strconv.Itoa(p.times)}, name, bytes)
			if err != nil {
				return nil, err
			}
			return []sample{{row, stat.Median(points[0].values) / 1e3}}, nil
		}}
}

// withMemory does a step and also measures the most memory that the lab's forwarders had
// meanwhile, in MB.
func withMemory(m *measurement, s step) step {
	s.rows = append([]measure.Row{measure.Memory}, s.rows...)
	run := s.run
	s.run = func(ctx context.Context, t target) ([]sample, error) {
		for _, pid := range m.lab.Forwarders() {
			// From now on (proc(5), clear_refs).
			_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
		}
		samples, err := run(ctx, t)
		if err != nil {
			return samples, err
		}
		var most float64
		for _, pid := range m.lab.Forwarders() {
			kB, err := highest(pid)
			if err != nil {
				return samples, err
			}
			most += kB * 1024 / 1e6
		}
		return append(samples, sample{measure.Memory, most}), nil
	}
	return s
}

// highest returns the most memory that a process had, in kB.
func highest(pid int) (float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if words := strings.Fields(s.Text()); len(words) == 3 && words[0] == "VmHWM:" {
			return strconv.ParseFloat(words[1], 64)
		}
	}
	return 0, fmt.Errorf("process %d has no VmHWM", pid)
}

// disturbed does something after a time in the middle of a stream that is to last for whole. The
// value is how much longer than that the job took, its start included, in ms.
func (p *longhaul) disturbed(m *measurement, row measure.Row, after, whole time.Duration,
	disturb func(context.Context) error) step {
	return step{name: row.Name, rows: []measure.Row{row}, run: func(ctx context.Context, t target) ([]sample, error) {
		begun := time.Now()
		done := make(chan error, 1)
		timer := time.AfterFunc(after, func() { done <- disturb(ctx) })
		_, err := m.job(ctx, t.job(1, 1), whole+3*time.Minute, []string{"-w", "0", "-s", seconds(whole), "-b",
			strconv.Itoa(p.window)}, part{"stream", []int{1 << 20}})
		if !timer.Stop() {
			err = errors.Join(err, <-done)
		}
		if err != nil {
			return nil, err
		}
		return []sample{{row, measure.Milliseconds(time.Since(begun) - whole)}}, nil
	}}
}

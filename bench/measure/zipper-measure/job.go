package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/launch"
)

// part is an operation of the MPI program and its sizes in bytes.
type part struct {
	operation string
	sizes     []int
}

// point is one line that the MPI program prints: an operation at a size, and its values.
type point struct {
	operation string
	size      int
	values    []float64
}

// job runs the MPI program on a target with some options, for at most the time limit. With an error
// come the points before it; it is an error if there are fewer points than sizes.
func (m *measurement) job(ctx context.Context, t drive.Target, limit time.Duration, options []string,
	parts ...part) ([]point, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %v", limit))
	defer cancel()
	job, err := t.Job()
	if err != nil {
		return nil, err
	}
	job.Program = slices.Concat([]string{m.program}, options)
	count := 0
	for _, p := range parts {
		job.Program = append(job.Program, p.operation)
		for _, n := range p.sizes {
			job.Program = append(job.Program, strconv.Itoa(n))
		}
		count += len(p.sizes)
	}
	var out, errs bytes.Buffer
	res, err := launch.Run(ctx, job, launch.Options{Stdout: &out, Stderr: &errs})
	err = drive.Failure(ctx, res, err, errs.String())
	points, failed := parse(out.String())
	if err == nil {
		err = failed
	}
	if err == nil && len(points) < count {
		err = fmt.Errorf("%d points for %d sizes", len(points), count)
	}
	return points, err
}

// parse reads the points that the MPI program has printed, and skips what launchers print. With an
// error come the points before it.
func parse(out string) (points []point, err error) {
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) < 4 || words[0] != "point" {
			continue
		}
		p := point{operation: words[1]}
		p.size, err = strconv.Atoi(words[2])
		for _, w := range words[3:] {
			v, err2 := strconv.ParseFloat(w, 64)
			if err == nil {
				err = err2
			}
			p.values = append(p.values, v)
		}
		if err != nil {
			return points, fmt.Errorf("%s: want a size and numbers", strings.TrimSpace(line))
		}
		points = append(points, p)
	}
	return points, nil
}

// seconds formats a time for the MPI program.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

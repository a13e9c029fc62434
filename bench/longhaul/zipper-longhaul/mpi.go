package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/launch"
)

// numbers are lines of a word and numbers, as mpi/longhaul.c prints them.
type numbers map[string][]float64

// parse skips what launchers print.
func parse(out string) (numbers, error) {
	n := numbers{}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.Contains(" rates arrives returns took ", " "+words[0]+" ") {
			continue
		}
		for _, w := range words[1:] {
			v, err := strconv.ParseFloat(w, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
			}
			n[words[0]] = append(n[words[0]], v)
		}
	}
	return n, nil
}

// mpi runs the MPI program on a target.
func (m *measurement) mpi(ctx context.Context, t drive.Target, limit time.Duration, words ...string) (numbers, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %v", limit))
	defer cancel()
	job, err := t.Job()
	if err != nil {
		return nil, err
	}
	job.Program = append([]string{m.program}, words...)
	var out, errs bytes.Buffer
	res, err := launch.Run(ctx, job, launch.Options{Stdout: &out, Stderr: &errs})
	if err := drive.Failure(ctx, res, err, errs.String()); err != nil {
		return nil, err
	}
	return parse(out.String())
}

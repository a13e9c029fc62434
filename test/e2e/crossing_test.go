package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/forwardertest"
)

// least returns the smallest number of payload bytes that a collective of m bytes per rank with
// root 0 must send from a cluster of a ranks to a later one of b, and back, with each byte sent
// once.
func least(op string, a, b, m int) (there, back int) {
	switch op {
	case "bcast", "scan", "exscan":
		return m, 0
	case "gatherv":
		return 0, b * m
	case "scatterv":
		return b * m, 0
	case "allgatherv":
		return a * m, b * m
	case "alltoallv":
		return a * b * m, a * b * m
	case "reduce":
		return 0, m
	case "allreduce":
		return m, m
	case "reduce_scatter":
		return b * m, a * m
	}
	return 0, 0
}

// TestCollectivesCrossOnce counts, with a forwarder of its own, the bytes that each collective
// sends between the clusters.
func TestCollectivesCrossOnce(t *testing.T) {
	New(t)
	overSplits(t, "", []split{oneOne, twoTwo, threeFour}, func(b *Bed, s split) {
		t := b.T
		path := compileFor(b, s.clusters, "c/coll_crossing.c")
		f, addr := forwardertest.Serve(t, forwarder.Config{})
		args, id := b.runArgs(Job{Clusters: s.clusters, Flags: []string{"--zipper", addr}})
		args = append(args, "--", path, "8", "65536", "4194304")
		ctx, cancel := context.WithTimeout(context.Background(), b.Limit)
		defer cancel()
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = b.Root
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		follow(t, bufio.NewScanner(stdout), stdin, f, id, s)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, stderr.String())
		}
		b.NothingLeft(id)
	})
}

// follow reads the output of rank 0 of coll_crossing.c and compares counters from line to line.
func follow(t *testing.T, lines *bufio.Scanner, stdin io.Writer, f *forwarder.Forwarder, id string, s split) {
	crossed := func() (v [2]int) {
		for _, j := range f.Status().Jobs {
			for _, c := range j.Traffic {
				if j.Job == id && c.From == "a" && c.To == "b" {
					v[0] = int(c.PayloadBytes)
				}
				if j.Job == id && c.From == "b" && c.To == "a" {
					v[1] = int(c.PayloadBytes)
				}
			}
		}
		return v
	}
	var before [2]int
	seen := 0
	for lines.Scan() {
		op, size, _ := strings.Cut(lines.Text(), " ")
		m, err := strconv.Atoi(size)
		if err != nil {
			t.Errorf("the program said %q", lines.Text())
			continue
		}
		there, back := least(op, s.clusters[0].Ranks, s.clusters[1].Ranks, m)
		want := [2]int{there, back}
		if op != "nothing" {
			seen++
			now := crossed()
			// A forwarder counts a frame after it has sent it on, so the counters may lag for a
			// moment.
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end) &&
				(now[0] < before[0]+there || now[1] < before[1]+back); now = crossed() {
				time.Sleep(time.Millisecond)
			}
			if got := [2]int{now[0] - before[0], now[1] - before[1]}; got != want {
				t.Errorf("%s of %d bytes: %v payload bytes crossed (a to b, b to a), want %v", op, m, got, want)
			}
		}
		before = crossed()
		if _, err := fmt.Fprintln(stdin); err != nil {
			t.Error(err)
		}
	}
	if want := 33; seen != want {
		t.Errorf("%d of %d collectives were done", seen, want)
	}
}

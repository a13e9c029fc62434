package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Result is the result of a command.
type Result struct {
	Command string
	Stdout  string
	Stderr  string
	// Status is the exit status, or 128 + signal if a signal ended the command.
	Status int
	Took   time.Duration
}

// String returns all of it, for failure messages.
func (r Result) String() string {
	return fmt.Sprintf("%s\nexit status %d after %v\n--- stdout\n%s--- stderr\n%s---", r.Command, r.Status,
		r.Took.Round(time.Millisecond), r.Stdout, r.Stderr)
}

// OK fails the test unless the command ended with status 0.
func (b *Bed) OK(r Result) Result {
	b.T.Helper()
	if r.Status != 0 {
		b.T.Fatalf("failed:\n%v", r)
	}
	return r
}

// Fails checks that the command ended with the status and printed all the words on standard error.
func (b *Bed) Fails(r Result, status int, words ...string) {
	b.T.Helper()
	if r.Status != status {
		b.T.Errorf("exit status %d, want %d:\n%v", r.Status, status, r)
	}
	for _, w := range words {
		if !strings.Contains(r.Stderr, w) {
			b.T.Errorf("standard error does not say %q:\n%v", w, r)
		}
	}
}

// Summary reads the last line of standard error, which --json has written; other lines may precede
// it.
func (b *Bed) Summary(r Result, out any) {
	b.T.Helper()
	text := strings.TrimSpace(r.Stderr)
	if err := json.Unmarshal([]byte(text[strings.LastIndexByte(text, '\n')+1:]), out); err != nil {
		b.T.Fatalf("%v\n%v", err, r)
	}
}

// Same compares the lines of two outputs. Ranks print in any order, so the lines are sorted first.
// edit, if not nil, changes each line before the comparison (to remove timings); a line that
// becomes empty is dropped.
func (b *Bed) Same(native, zipped Result, edit func(string) string) {
	b.T.Helper()
	want, got := lines(native.Stdout, edit), lines(zipped.Stdout, edit)
	if !slices.Equal(want, got) {
		b.T.Errorf("zipped output differs from native output:\n%s\n\nnative: %v\n\nzipped: %v",
			firstDifference(want, got), native, zipped)
	}
}

func lines(s string, edit func(string) string) []string {
	var out []string
	for l := range strings.Lines(s) {
		l = strings.TrimRight(l, "\r\n")
		if edit != nil {
			if l = edit(l); l == "" {
				continue
			}
		}
		out = append(out, l)
	}
	slices.Sort(out)
	return out
}

func firstDifference(want, got []string) string {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want):
			return fmt.Sprintf("only zipped: %q", got[i])
		case i >= len(got):
			return fmt.Sprintf("only native: %q", want[i])
		case want[i] != got[i]:
			return fmt.Sprintf("native %q\nzipped %q", want[i], got[i])
		}
	}
	return "none"
}

// Differential runs a program natively with MPI library mpi and zipped over the clusters. Both runs
// must succeed and print the same. argv may contain "{mpi}".
func (b *Bed) Differential(mpi string, clusters []Cluster, edit func(string) string, argv ...string) {
	b.T.Helper()
	ranks := 0
	for _, c := range clusters {
		ranks += c.Ranks
	}
	native := make([]string, len(argv))
	for i, w := range argv {
		native[i] = strings.ReplaceAll(w, "{mpi}", mpi)
	}
	n := b.OK(b.Native(mpi, ranks, native...))
	z := b.OK(b.Zipped(Job{Clusters: clusters}, argv...))
	b.Same(n, z, edit)
}

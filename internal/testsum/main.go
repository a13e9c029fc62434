// Command testsum reads the output of go test -json and prints a summary for people: every failed
// test with its output, packages that did not build, a line with the slowest tests, and a line of
// counts at the end, "N passed, N failed, N skipped".
//
// Tests with subtests do not count themselves. A package that fails without a failed test (it does
// not build, it crashes) counts as one failure. The reasons of skipped tests are appended to the
// file of -skips.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// test has the state of one test or, with an empty name, of one package.
type test struct {
	output   []string
	result   string
	children bool
}

type summary struct {
	out, skips              io.Writer
	tests                   map[[2]string]*test
	passed, failed, skipped int
	slowest                 []timed // longest first, at most few
}

// timed is a test without a parent, and how long it took in seconds.
type timed struct {
	name    string
	seconds float64
}

// few is the number of slowest tests that are printed.
const few = 12

func main() {
	skips := flag.String("skips", "", "append the reasons of skipped tests to this `file`")
	flag.Parse()
	s := &summary{out: os.Stdout, skips: io.Discard, tests: map[[2]string]*test{}}
	if *skips != "" {
		f, err := os.OpenFile(*skips, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			fmt.Fprintln(os.Stderr, "testsum:", err)
			os.Exit(2)
		}
		defer f.Close()
		s.skips = f
	}
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(s.out, "testsum:", err)
		s.failed++
	}
	s.printSlowest()
	fmt.Fprintf(s.out, "   %d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
}

func (s *summary) read(r io.Reader) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(s.out, line) // not from go test: a message of the build, a crash
			} else {
				s.take(e)
			}
		}
		if err == io.EOF {
			return s.unfinished()
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) take(e event) {
	t := s.tests[[2]string{e.Package, e.Test}]
	if t == nil {
		t = &test{}
		s.tests[[2]string{e.Package, e.Test}] = t
	}
	switch e.Action {
	case "start", "run":
		if i := strings.LastIndexByte(e.Test, '/'); i >= 0 {
			if parent := s.tests[[2]string{e.Package, e.Test[:i]}]; parent != nil {
				parent.children = true
			}
		}
	case "output":
		t.output = append(t.output, e.Output)
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "pass", "fail", "skip":
		t.result = e.Action
		s.end(e, t)
	}
}

func (s *summary) end(e event, t *test) {
	if e.Test == "" {
		s.packageEnd(e, t)
		return
	}
	if !strings.Contains(e.Test, "/") {
		s.slowest = append(s.slowest, timed{e.Test, e.Elapsed})
		slices.SortStableFunc(s.slowest, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
		s.slowest = s.slowest[:min(few, len(s.slowest))]
	}
	switch e.Action {
	case "pass":
		if !t.children {
			s.passed++
		}
		t.output = nil
	case "skip":
		s.skipped++
		fmt.Fprintf(s.skips, "%s: %s\n", e.Test, reason(t.output))
	case "fail":
		if !s.childFailed(e) {
			s.failed++
		}
		fmt.Fprintf(s.out, "FAILED %s %s (%.1f s)\n%s", e.Package, e.Test, e.Elapsed, strings.Join(t.output, ""))
	}
}

// printSlowest prints the slowest tests that took a second or longer.
func (s *summary) printSlowest() {
	var words []string
	for _, t := range s.slowest {
		if t.seconds >= 1 {
			words = append(words, fmt.Sprintf("%s %.0f s", t.name, t.seconds))
		}
	}
	if len(words) > 0 {
		fmt.Fprintf(s.out, "   slowest: %s\n", strings.Join(words, ", "))
	}
}

// childFailed reports whether a failed test has a failed subtest, which has been counted already.
func (s *summary) childFailed(e event) bool {
	for k, o := range s.tests {
		if k[0] == e.Package && o.result == "fail" && strings.HasPrefix(k[1], e.Test+"/") {
			return true
		}
	}
	return false
}

// packageEnd counts a package that failed without a failed test.
func (s *summary) packageEnd(e event, t *test) {
	if e.Action != "fail" {
		return
	}
	for k, o := range s.tests {
		if k[0] == e.Package && k[1] != "" && o.result == "fail" {
			return
		}
	}
	s.failed++
	fmt.Fprintf(s.out, "FAILED %s\n%s", e.Package, strings.Join(t.output, ""))
	for k, o := range s.tests {
		if k[0] == e.Package && k[1] != "" && o.result == "" {
			fmt.Fprintf(s.out, "it was running %s:\n%s", k[1], strings.Join(o.output, ""))
			o.result = "fail"
		}
	}
}

// unfinished returns an error for packages without an end, which means that go test itself was
// killed.
func (s *summary) unfinished() error {
	for k, t := range s.tests {
		if k[0] != "" && k[1] == "" && t.result == "" {
			return fmt.Errorf("the output ends before %s does", k[0])
		}
	}
	return nil
}

var where = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// reason returns the text with which a test was skipped.
func reason(output []string) string {
	var reasons []string
	for _, l := range output {
		if where.MatchString(l) {
			reasons = append(reasons, strings.TrimSpace(where.ReplaceAllString(l, "")))
		}
	}
	return strings.Join(reasons, "; ")
}

package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/measure"
)

func TestMistakesAreUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":                                        "want sweep or longhaul",
		"local":                                   "want sweep or longhaul",
		"longhaul --program p --delay 20":         "want a time",
		"longhaul --program p --delay 1ms,99s":    "want 0 to 10s",
		"longhaul --program p --rate off":         "shares of a rate",
		"longhaul --program p --rounds 0":         "want a number from 1",
		"longhaul --program p --others -1":        "want a number of rounds",
		"longhaul --program p x":                  "no arguments",
		"longhaul":                                "want --program",
		"longhaul --program p --queue 100":        "not one packet",
		"longhaul --program p --only (":           "missing closing",
		"longhaul --program p --congestion":       "needs an argument",
		"longhaul --program p --delay 1ms,,2ms":   "want a time",
		"sweep":                                   "want --program",
		"sweep --program p x":                     "no arguments",
		"sweep --program p --on bcas":             "no such operation",
		"sweep --program p --on (":                "missing closing",
		"sweep --program p --sizes 0":             "want a number of bytes",
		"sweep --program p --ranks 4":             "like 4+4",
		"sweep --program p --ranks 0+1":           "like 4+4",
		"sweep --program p --modes classic":       "want zipped, nat, routed",
		"sweep --program p --modes zipped:size=1": "no such setting",
		"sweep --program p --order no":            "up, down or mixed",
		"sweep --program p --rounds 0":            "want a number from 1",
		"sweep --program p --again -1":            "--again: want 0",
		"sweep --program p --last -1":             "--last: want 0",
		"sweep --program p --seconds 0":           "--seconds: want more",
	} {
		_, _, _, err := parseFlags(strings.Fields(args))
		var usage drive.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// parsed returns the settings, the plan and its sessions for a command line.
func parsed[P plan](t *testing.T, args string) (settings, P, []*session) {
	t.Helper()
	s, p, sessions, err := parseFlags(strings.Fields(args))
	if err != nil {
		t.Fatal(err)
	}
	return s, p.(P), sessions
}

func TestQuickKeepsOptionsOfTheCommandLine(t *testing.T) {
	s, p, all := parsed[*sweep](t, "sweep --program p --quick --ranks 3+5 --rate none --on bcast|iscan")
	if s.rounds != 1 || p.again != 0 || !slices.Equal(p.sizes, []int{8, 65536}) || len(p.ranks) != 1 ||
		p.ranks[0] != [2]int{3, 5} || all[0].config.Rate != "" || len(p.operations) != 2 {
		t.Errorf("%+v, %+v", s, p)
	}
	s, _, all = parsed[*longhaul](t, "longhaul --program p --quick --queue 2MB --rounds 2")
	if s.rounds != 2 || len(all) != 1 || all[0].report.Line.Delay != 5*time.Millisecond ||
		all[0].report.Line.Queue != 2_000_000 {
		t.Errorf("%+v, %+v", s, all[0].report.Line)
	}
}

func TestDefaults(t *testing.T) {
	s, p, all := parsed[*sweep](t, "sweep --program p")
	if s.rounds != 6 || len(p.operations) != len(measure.Operations()) || len(p.ranks) != 3 || all[0].config.Rate != "1gbit" ||
		all[0].repeats != 6 {
		t.Errorf("%+v", p)
	}
	s, _, all = parsed[*longhaul](t, "longhaul --program p")
	if s.rounds != 5 || len(all) != 2 || all[1].report.Line.Delay != 50*time.Millisecond || all[1].file != "longhaul-50ms" {
		t.Errorf("%+v, %d sessions", s, len(all))
	}
}

func TestParseSkipsWhatLaunchersPrint(t *testing.T) {
	p, err := parse("a warning\npoint bcast 8 1.5\npoint of view\npoint stream 9 3 4\n")
	if err != nil || len(p) != 2 || p[0].operation != "bcast" || p[1].size != 9 || !slices.Equal(p[1].values, []float64{3, 4}) {
		t.Errorf("%v: %v", err, p)
	}
	for _, line := range []string{"point bcast 8 many", "point bcast x 1"} {
		if p, err := parse("point bcast 4 1\n" + line + "\n"); err == nil || len(p) != 1 {
			t.Errorf("%s: %v, %v", line, p, err)
		}
	}
}

// TestPlainStreams checks that plain TCP over loopback has as many rates as streams, and that no
// rate is zero.
func TestPlainStreams(t *testing.T) {
	counts, done := make(chan error, 1), make(chan error, 1)
	const address = "127.0.0.1:0"
	ready := make(chan string, 1)
	go func() {
		rates, err := receive(address, 3, 50*time.Millisecond, 100*time.Millisecond, func(a string) { ready <- a })
		if err == nil && (len(rates) != 3 || slices.Min(rates) <= 0) {
			err = errors.New("a stream carried nothing")
		}
		counts <- err
	}()
	go func() { done <- tcpSend(<-ready, 3) }()
	if err := <-counts; err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

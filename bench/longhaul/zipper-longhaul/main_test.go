package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
)

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--program p --delay 20":       "want a time",
		"--program p --delay 1ms,99s":  "want 0 to 10s",
		"--program p --rate off":       "shares of a rate",
		"--program p --rounds 0":       "want a number from 1",
		"--program p --others -1":      "want a number of rounds",
		"--program p x":                "no arguments",
		"":                             "want --program",
		"--program p --queue 100":      "not one packet",
		"--program p --only (":         "missing closing",
		"--program p --congestion":     "needs an argument",
		"--program p --delay 1ms,,2ms": "want a time",
	} {
		_, err := parseFlags(strings.Fields(args))
		var usage drive.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	s, err := parseFlags(strings.Fields("--program p --quick --queue 2MB"))
	if err != nil || s.rounds != 1 || len(s.lines) != 1 || s.lines[0].Delay != 5*time.Millisecond ||
		s.lines[0].Queue != 2_000_000 {
		t.Errorf("%v: %+v", err, s)
	}
	s, err = parseFlags(strings.Fields("--program p"))
	if err != nil || len(s.lines) != 2 || s.lines[1].Delay != 50*time.Millisecond {
		t.Errorf("%v: %+v", err, s)
	}
}

// What launchers and libraries print beside the numbers does not matter.
func TestParse(t *testing.T) {
	n, err := parse("a warning\nrates 1.5 2\n\nWARNING: took a nap\ntook\narrives 3\narrives 4\n")
	if err != nil || !slices.Equal(n["rates"], []float64{1.5, 2}) || !slices.Equal(n["arrives"], []float64{3, 4}) ||
		len(n["took"]) != 0 {
		t.Errorf("%v: %v", err, n)
	}
	if _, err := parse("rates 1 many\n"); err == nil {
		t.Error("many is no number")
	}
}

// Plain TCP over loopback: as many rates as streams, none of them zero.
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

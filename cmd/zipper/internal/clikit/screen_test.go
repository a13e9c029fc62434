package clikit

import (
	"bytes"
	"strings"
	"testing"
)

// TestProgressLineIsRemovedBeforeOutput checks that the line is removed before any other output,
// and is never longer than the terminal.
func TestProgressLineIsRemovedBeforeOutput(t *testing.T) {
	var term bytes.Buffer
	p := NewProgress(&term, 11)
	out := p.Over(&term)
	p.Show("waits\nfor everybody")
	if _, err := out.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	p.Show("")
	p.Show("b")
	p.Show("")
	if got, want := term.String(), "waits for…\r\x1b[Khello\nb\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPageFillsTheTerminal(t *testing.T) {
	var term bytes.Buffer
	if err := Page(&term, "one\ntwo two two\nthree\nfour\nfive\n", 7, 4); err != nil {
		t.Fatal(err)
	}
	if got, want := term.String(), "\x1b[Hone\x1b[K\ntwo tw…\x1b[K\n… and …\x1b[K\n\x1b[J"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	term.Reset()
	if err := Page(&term, strings.Repeat("x\n", 3), 80, 24); err != nil ||
		strings.Count(term.String(), "x\x1b[K\n") != 3 {
		t.Errorf("got %q, %v", term.String(), err)
	}
}

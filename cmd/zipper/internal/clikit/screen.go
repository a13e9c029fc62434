package clikit

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Terminal is the size of the terminal that a file is; ok is false if it is none.
func Terminal(f *os.File) (columns, rows int, ok bool) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	if w.Col == 0 || w.Row == 0 { // some say nothing
		return 80, 24, true
	}
	return int(w.Col), int(w.Row), true
}

// Progress shows one line on a terminal, below whatever else is written there by way of Over. Safe
// for concurrent use.
type Progress struct {
	mu      sync.Mutex
	w       io.Writer
	columns int
	shown   bool
}

// NewProgress makes one for a terminal so wide.
func NewProgress(w io.Writer, columns int) *Progress { return &Progress{w: w, columns: columns} }

// Show puts text in place of the line; empty: there is none.
func (p *Progress) Show(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	if text != "" {
		_, _ = io.WriteString(p.w, fit(text, p.columns-1)) // it is for people who look
		p.shown = true
	}
}

func (p *Progress) clear() {
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// Over is a writer to the same terminal, whose output comes in place of the line.
func (p *Progress) Over(w io.Writer) io.Writer { return over{p, w} }

type over struct {
	p *Progress
	w io.Writer
}

func (o over) Write(b []byte) (int, error) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	o.p.clear()
	return o.w.Write(b)
}

// fit is text in one line of at most n characters.
func fit(text string, n int) string {
	r := []rune(strings.ReplaceAll(text, "\n", " "))
	if len(r) > n {
		r = append(r[:max(0, n-1)], '…')
	}
	return string(r)
}

// Page puts a text over what a terminal shows: from its top, as much as it has room for.
func Page(w io.Writer, text string, columns, rows int) error {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if n := len(lines) - (rows - 1); n > 0 {
		lines = append(lines[:max(0, rows-2)], fmt.Sprintf("… and %d more lines", n+1))
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, l := range lines {
		b.WriteString(fit(l, columns) + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(w, b.String())
	return err
}

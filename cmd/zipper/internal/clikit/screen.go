package clikit

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Terminal returns the size of a file's terminal; ok is false if the file is not a terminal.
func Terminal(f *os.File) (columns, rows int, ok bool) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	if w.Col == 0 || w.Row == 0 { // some terminals report no size
		return 80, 24, true
	}
	return int(w.Col), int(w.Row), true
}

// Progress shows one line on a terminal, below the output that is written there through Over. It is
// safe for concurrent use.
type Progress struct {
	mu      sync.Mutex
	w       io.Writer
	columns int
	shown   bool
}

// NewProgress returns a Progress for a terminal of that width.
func NewProgress(w io.Writer, columns int) *Progress { return &Progress{w: w, columns: columns} }

// Show replaces the line by text; an empty text removes it.
func (p *Progress) Show(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	if text != "" {
		_, _ = io.WriteString(p.w, fit(text, p.columns-1)) // the line is for users, so an error does not matter
		p.shown = true
	}
}

func (p *Progress) clear() {
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// Over returns a writer to the same terminal, whose output replaces the line.
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

// fit returns text in one line of at most n characters.
func fit(text string, n int) string {
	r := []rune(strings.ReplaceAll(text, "\n", " "))
	if len(r) > n {
		r = append(r[:max(0, n-1)], '…')
	}
	return string(r)
}

// Page replaces the content of a terminal by a text: from the top, as much as there is room for.
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

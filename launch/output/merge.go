package output

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"
)

// Merger lets several sources write to one destination without mixing their lines. It passes a line
// on when it is complete, and text without a newline (a prompt) after a short while, as it is. It
// is safe for concurrent use.
type Merger struct {
	mu  sync.Mutex
	dst io.Writer
	err error
	// last is the source of the last write.
	last *source
	// freed is when dst accepted text that it had not accepted at once.
	freed time.Time
}

// NewMerger merges into dst.
func NewMerger(dst io.Writer) *Merger { return &Merger{dst: dst} }

// Lost returns why dst did not take all of the text, or nil if it did. A reader that has ended is
// no such reason.
func (m *Merger) Lost() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if errors.Is(m.err, syscall.EPIPE) {
		return nil
	}
	return m.err
}

// Edit changes a line, including its newline if it has one; a nil Edit changes nothing. The result
// may be the line itself, and an empty result drops the line.
type Edit func(line []byte) []byte

// Source returns one more writer. Each complete line goes through edit; Close passes on the
// remaining text. Neither returns an error if dst fails (see Lost), because a job need not end for
// that.
func (m *Merger) Source(edit Edit) io.WriteCloser {
	s := &source{m: m, edit: edit}
	s.rest = delayed{m: m, pass: func() { s.emit(len(s.buf)) }}
	return s
}

// write writes text to dst. s is its source, or nil for whole lines that no source continues; m is
// locked.
func (m *Merger) write(s *source, text []byte) {
	if m.err != nil {
		return
	}
	begin := time.Now()
	_, m.err = m.dst.Write(text)
	m.last = s
	if time.Since(begin) > slowWrite {
		m.freed = time.Now()
	}
}

// delayed passes on text that has waited long enough for the text that may follow it. Its methods
// need m locked.
type delayed struct {
	m     *Merger
	pass  func()      // The function writes the text; m is locked.
	timer *time.Timer // The timer is nil while no text waits.
}

// start has pass called after partialAfter, or later while dst takes no text, because the text that
// may follow then waits as well.
func (d *delayed) start() {
	var t *time.Timer
	t = time.AfterFunc(partialAfter, func() {
		d.m.mu.Lock()
		defer d.m.mu.Unlock()
		switch {
		case d.timer != t: // it was stopped meanwhile
		case time.Since(d.m.freed) < partialAfter:
			d.start()
		default:
			d.timer = nil
			d.pass()
		}
	})
	d.timer = t
}

func (d *delayed) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

type source struct {
	m    *Merger
	edit Edit
	buf  []byte
	// rest passes on the line in buf if the line's rest does not come.
	rest delayed
	// begun tells that the beginning of the line in buf is already out, and no other source's text
	// after it.
	begun bool
}

func (s *source) Write(p []byte) (int, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.rest.stop()
	s.buf = append(s.buf, p...)
	if i := bytes.LastIndexByte(s.buf, '\n'); i >= 0 {
		s.emit(i + 1)
	}
	if len(s.buf) > maxLine {
		s.emit(len(s.buf))
	}
	if len(s.buf) > 0 {
		s.rest.start()
	}
	return len(p), nil
}

// emit passes on the first n bytes of buf.
func (s *source) emit(n int) {
	if n == 0 || n > len(s.buf) {
		return
	}
	out := s.buf[:n]
	s.begun = s.begun && s.m.last == s
	if s.edit != nil {
		var edited []byte
		for line := range bytes.Lines(out) {
			text := line
			if !s.begun {
				text = s.edit(line)
			}
			edited = append(edited, text...)
			s.begun = len(text) > 0 && line[len(line)-1] != '\n'
		}
		out = edited
	}
	s.m.write(s, out)
	s.buf = append(s.buf[:0], s.buf[n:]...)
}

func (s *source) Close() error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.rest.stop()
	s.emit(len(s.buf))
	return nil
}

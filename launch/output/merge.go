package output

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"
)

// Merger lets several sources write to one destination without mixing their lines. A line is passed
// on when it is complete; what stays without a newline (a prompt) is passed on after a short while,
// as it is. Safe for concurrent use.
type Merger struct {
	mu    sync.Mutex
	dst   io.Writer
	err   error
	last  *source   // who wrote last
	freed time.Time // when dst took something that it had not taken at once
}

// NewMerger merges into dst.
func NewMerger(dst io.Writer) *Merger { return &Merger{dst: dst} }

// Lost is why dst did not take all of what was written, nil if it did. That nobody reads any more
// does not count.
func (m *Merger) Lost() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if errors.Is(m.err, syscall.EPIPE) {
		return nil
	}
	return m.err
}

// Edit changes a line, its newline included, if it has one; nil changes nothing. What it gives may
// be the line itself, and empty to drop it.
type Edit func(line []byte) []byte

// Source is one more writer. Each complete line goes through edit; Close passes on what is left.
// Neither tells if dst fails (see Lost): a job need not end for that.
func (m *Merger) Source(edit Edit) io.WriteCloser {
	return &source{m: m, edit: edit}
}

type source struct {
	m     *Merger
	edit  Edit
	buf   []byte
	timer *time.Timer
	begun bool // the beginning of the line in buf is already out, and nobody else's text after it
}

func (s *source) Write(p []byte) (int, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.buf = append(s.buf, p...)
	if i := bytes.LastIndexByte(s.buf, '\n'); i >= 0 {
		s.emit(i + 1)
	}
	if len(s.buf) > maxLine {
		s.emit(len(s.buf))
	}
	if len(s.buf) > 0 {
		s.wait()
	}
	return len(p), nil
}

// wait passes on what is in buf if its line's rest does not come. While dst took nothing the rest
// may have waited, too.
func (s *source) wait() {
	var t *time.Timer
	t = time.AfterFunc(partialAfter, func() {
		s.m.mu.Lock()
		defer s.m.mu.Unlock()
		switch {
		case s.timer != t: // the rest came meanwhile
		case time.Since(s.m.freed) < partialAfter:
			s.wait()
		default:
			s.emit(len(s.buf))
		}
	})
	s.timer = t
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
	if s.m.err == nil {
		begin := time.Now()
		_, s.m.err = s.m.dst.Write(out)
		s.m.last = s
		if time.Since(begin) > slowWrite {
			s.m.freed = time.Now()
		}
	}
	s.buf = append(s.buf[:0], s.buf[n:]...)
}

func (s *source) Close() error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.emit(len(s.buf))
	return nil
}

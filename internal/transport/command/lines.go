package command

import (
	"bytes"
	"sync/atomic"
)

// lines splits the standard error of a command into lines. It is for one writer.
type lines struct {
	tell func(line string) // called with each line; nil discards them
	part []byte            // beginning of the next line
	last atomic.Pointer[string]
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if !whole && len(l.part) < maxLine {
			return len(p), nil
		}
		l.part = rest
		if text := string(bytes.TrimSpace(line)); text != "" {
			l.last.Store(&text)
			if l.tell != nil {
				l.tell(text)
			}
		}
	}
}

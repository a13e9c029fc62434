package command

import (
	"bytes"
	"sync/atomic"
)

// lines takes what a command writes to its standard error apart. One writer.
type lines struct {
	tell func(line string) // nil: nobody wants them
	part []byte            // of the next one
	last atomic.Pointer[string]
}

// Write is io.Writer's.
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

// Package account appends a record of each job that has run over a forwarder to a file: one line of
// JSON, a forwarder.Summary.
package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder"
)

// Log writes records in the order in which jobs end. It opens the file for each record and writes
// the record at the end of the file with one write. So the file may be moved away at any time, and
// several forwarders may share a file. Log is safe for concurrent use.
type Log struct {
	name string
	log  *zap.Logger
	done chan struct{} // closed when all records are written

	mu      sync.Mutex
	waiting [][]byte // the records that are not written yet, as lines
	some    *sync.Cond
	closed  bool
}

// Open returns a Log, and an error if the file cannot be written.
func Open(name string, log *zap.Logger) (*Log, error) {
	l := &Log{name: name, log: log, done: make(chan struct{})}
	l.some = sync.NewCond(&l.mu)
	if err := l.write(nil); err != nil {
		return nil, fmt.Errorf("cannot write accounts: %w (give a file in a directory that this user may write)", err)
	}
	go l.run()
	return l, nil
}

// JobEnd queues the record of a job that has ended, for run to write. It returns without waiting
// for the disk, because its caller must not block.
func (l *Log) JobEnd(s forwarder.Summary) {
	line, err := json.Marshal(&s)
	if err != nil {
		l.log.Error("no record of a job", zap.String("job", s.Job), zap.Error(err))
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, append(line, '\n'))
	l.some.Signal()
}

// Close waits until all queued records are written, and ends the goroutine that writes them. JobEnd
// must not be called any more.
func (l *Log) Close() {
	l.mu.Lock()
	l.closed = true
	l.some.Signal()
	l.mu.Unlock()
	<-l.done
}

// run writes the records that JobEnd queues to the file, until Close is called and none is left.
func (l *Log) run() {
	defer close(l.done)
	for {
		l.mu.Lock()
		for len(l.waiting) == 0 && !l.closed {
			l.some.Wait()
		}
		lines := l.waiting
		l.waiting = nil
		l.mu.Unlock()
		if len(lines) == 0 {
			return
		}
		for _, line := range lines {
			if err := l.write(line); err != nil { // the log gets the record instead
				l.log.Error("a job's record cannot be written to "+l.name, zap.Error(err),
					zap.ByteString("record", line))
			}
		}
	}
}

// write appends a record, as one line, to the end of the file. With an empty line it only opens the
// file, to find out whether the file can be written.
func (l *Log) write(line []byte) error {
	f, err := os.OpenFile(l.name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	if len(line) > 0 {
		_, err = f.Write(line)
	}
	return errors.Join(err, f.Close())
}

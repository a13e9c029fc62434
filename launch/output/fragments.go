package output

import (
	"bytes"
	"io"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// fragments undoes what Open MPI's --tag-output does to long lines. That puts "[1,RANK]<stdout>:"
// before every piece of at most 4 KiB that it reads from a process. Tags come in the middle of
// lines, too, and pieces of several processes take turns.
//
// Each process's text goes, without tags, to a writer of its own. Text without a tag where one
// belongs is the launcher's own. A tag that the processes themselves print cannot be told from the
// launcher's, if it is of this stream and of a process that there is. Safe for concurrent use.
type fragments struct {
	open  func(native int) io.WriteCloser // the writer of a native rank; launcher: of the launcher's own words
	ranks int                             // so many there are
	tag   *regexp.Regexp

	mu    sync.Mutex
	to    map[int]io.WriteCloser
	now   int    // whose text is coming in
	held  []byte // perhaps the first bytes of a tag
	timer *time.Timer
}

// launcher is whose text the native launcher's own is.
const launcher = -1

// fragmentHead is what may become a tag.
var fragmentHead = regexp.MustCompile(`\[(?:1(?:,(?:[0-9]{1,9}(?:\](?:<[a-z]{0,7}(?:>:?)?)?)?)?)?)?$`)

// What Open MPI calls the streams.
const (
	tagStdout = `stdout`
	tagStderr = `stderr|stddiag`
)

// space: a tag ends with a space after the colon (PRRTE).
func newFragments(streams string, space bool, ranks int, open func(native int) io.WriteCloser) *fragments {
	end := `)>:`
	if space {
		end += ` `
	}
	return &fragments{open: open, ranks: ranks, tag: regexp.MustCompile(`\[1,([0-9]{1,9})\]<(?:` + streams + end),
		to: map[int]io.WriteCloser{}, now: launcher}
}

func (f *fragments) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	data := append(f.held, p...)
	f.held = nil
	from := 0 // where to look
	for {
		tag := f.tag.FindSubmatchIndex(data[from:])
		if tag == nil {
			break
		}
		rank, _ := strconv.Atoi(string(data[from+tag[2] : from+tag[3]]))
		if rank >= f.ranks {
			from += tag[1]
			continue
		}
		if err := f.pass(data[:from+tag[0]]); err != nil {
			return 0, err
		}
		f.now = rank
		data, from = data[from+tag[1]:], 0
	}
	if head := fragmentHead.Find(data[max(from, len(data)-longestTag):]); head != nil {
		f.held = bytes.Clone(head)
		data = data[:len(data)-len(head)]
	}
	if err := f.pass(data); err != nil {
		return 0, err
	}
	if f.held != nil { // a prompt may end so
		var t *time.Timer
		t = time.AfterFunc(partialAfter, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.timer == t {
				_ = f.release()
			}
		})
		f.timer = t
	}
	return len(p), nil
}

// release passes on what turned out to be no tag.
func (f *fragments) release() error {
	held := f.held
	f.held = nil
	return f.pass(held)
}

// pass gives text to whose it is; after the end of a line it is the launcher's, until a tag says
// more.
func (f *fragments) pass(text []byte) error {
	for line := range bytes.Lines(text) {
		w := f.to[f.now]
		if w == nil {
			w = f.open(f.now)
			f.to[f.now] = w
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		if line[len(line)-1] == '\n' {
			f.now = launcher
		}
	}
	return nil
}

// Close passes on what is left.
func (f *fragments) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.release()
	for _, w := range f.to {
		if e := w.Close(); err == nil {
			err = e
		}
	}
	return err
}

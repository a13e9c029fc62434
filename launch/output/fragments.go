package output

import (
	"bytes"
	"io"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// fragments undoes the effect of Open MPI's --tag-output on long lines. That puts
// "[1,RANK]<stdout>:" before every piece of at most 4 KiB that it reads from a process. Tags are
// also in the middle of lines, and pieces of several processes alternate.
//
// Each process's text goes, without tags, to a writer of its own. Text without a tag at the
// beginning of a line is the launcher's own. A tag that the processes themselves print cannot be
// distinguished from the launcher's, if it is of this stream and of an existing process. fragments
// is safe for concurrent use.
type fragments struct {
	// open returns the writer of a native rank or, for launcher, of the launcher's own text.
	open func(native int) io.WriteCloser
	// ranks is the number of processes.
	ranks int
	tag   *regexp.Regexp

	mu sync.Mutex
	to map[int]io.WriteCloser
	// now is the process whose text is coming in.
	now int
	// held may be the first bytes of a tag.
	held  []byte
	timer *time.Timer
}

// launcher stands for the native launcher in place of a native rank.
const launcher = -1

// fragmentHead matches a text that may become a tag.
var fragmentHead = regexp.MustCompile(`\[(?:1(?:,(?:[0-9]{1,9}(?:\](?:<[a-z]{0,7}(?:>:?)?)?)?)?)?)?$`)

// Open MPI's names of the streams.
const (
	tagStdout = `stdout`
	tagStderr = `stderr|stddiag`
)

// newFragments returns fragments for a stream of so many ranks. space tells that a tag ends with a
// space after the colon (PRRTE).
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
	from := 0 // where the search continues
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
	if f.held != nil { // a prompt may end like the beginning of a tag
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

// release passes on text that turned out to be no tag.
func (f *fragments) release() error {
	held := f.held
	f.held = nil
	return f.pass(held)
}

// pass passes text to its process. After the end of a line the text is the launcher's, until a tag
// follows.
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

// Close passes on the remaining text.
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

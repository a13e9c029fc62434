package output

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"
)

// Boxes takes the framed messages (boxes) out of a launcher's output that the launcher prints when
// its processes have failed: each cluster's launcher prints some before the cause of the failure is
// known. A run shows the boxes of the cluster that is the cause once that is known, and those of
// clusters that ended well. It drops those of the other clusters, which failed because of the
// cause. Other boxes, which say why the launcher itself stops, stay in the output. Boxes is safe
// for concurrent use.
type Boxes struct {
	mu   sync.Mutex
	text strings.Builder
}

// frame describes the frame of such a message. All lines may have a tag before them.
type frame struct {
	top, begin, end *regexp.Regexp
	// closed tells that other messages have the same frame, and end like this one.
	closed bool
}

const tag = `^(?:\[[^\]\n]+\] )?`

// openMPI is the frame of Open MPI's launchers, on standard error.
var openMPI = frame{
	top: regexp.MustCompile(tag + `-{74}\n$`),
	begin: regexp.MustCompile(tag + `(?:Primary job +terminated normally, but|MPI_ABORT was invoked on rank|` +
		`\S+ (?:has )?(?:detected that one or more processes exited with non-zero status|` +
		`noticed that (?:process rank|the job aborted)|exited due to process rank))`),
	end:    regexp.MustCompile(tag + `-{74}\n$`),
	closed: true,
}

// mpich is the frame of MPICH's launcher, on standard output.
var mpich = frame{
	top:   regexp.MustCompile(tag + `={83}\n$`),
	begin: regexp.MustCompile(tag + `=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n$`),
	end:   regexp.MustCompile(tag + `Please see the FAQ page for debugging suggestions\n$`),
}

// Stdout returns the writer for the launcher's standard output, which goes to m. Close passes on
// lines that turned out to be no box.
func (b *Boxes) Stdout(m *Merger) io.WriteCloser {
	return b.stream(m, &boxFinder{all: b, frame: &mpich})
}

// Stderr returns the writer for standard error. Its lines outside boxes go through then.
func (b *Boxes) Stderr(m *Merger, then Edit) io.WriteCloser {
	return b.stream(m, &boxFinder{all: b, frame: &openMPI, then: then})
}

func (b *Boxes) stream(m *Merger, f *boxFinder) io.WriteCloser {
	f.lone = delayed{m: m, pass: func() {
		m.write(nil, f.pass(f.box))
		f.out = len(f.box)
	}}
	return &boxed{WriteCloser: m.Source(f.edit), finder: f, m: m}
}

// Text returns all boxes so far, as they were printed.
func (b *Boxes) Text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *Boxes) add(box []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Write(box)
}

// boxFinder examines the lines of one stream, one after the other.
type boxFinder struct {
	all   *Boxes
	frame *frame
	// The edit then is for all other lines; nil changes nothing.
	then Edit
	// box has the lines since the top of a frame; it is empty outside frames.
	box []byte
	// sure tells that the lines are a box, which is taken out.
	sure bool
	// other tells that another message with this frame passes.
	other bool

	// lone passes on the top of a frame, which may be a line of the program's, if no line follows.
	// The lines that follow later may still make it a box.
	lone delayed
	// out is the number of bytes of box that have passed.
	out int
}

func (f *boxFinder) edit(line []byte) []byte {
	top := f.frame.top.Match(line)
	switch {
	case f.other:
		f.other = !top
		return f.pass(line)
	case len(f.box) == 0 && top:
		f.box = bytes.Clone(line)
		f.lone.start()
		return nil
	case len(f.box) == 0, fromRank.Match(line):
		return f.pass(line)
	case !f.sure && !f.frame.begin.Match(line):
		f.other = f.frame.closed
		return append(f.release(), f.pass(line)...)
	}
	f.lone.stop()
	f.box = append(f.box, line...)
	if f.sure && f.frame.end.Match(line) {
		f.all.add(f.box)
		f.forget()
		return nil
	}
	f.sure = true
	if bytes.Count(f.box, []byte("\n")) > longestBox {
		return f.release()
	}
	return nil
}

// release returns the lines that are no box after all, without those that have passed.
func (f *boxFinder) release() (lines []byte) {
	for line := range bytes.Lines(f.box[f.out:]) {
		lines = append(lines, f.pass(line)...)
	}
	f.forget()
	return lines
}

func (f *boxFinder) forget() {
	f.lone.stop()
	f.box, f.sure, f.out = nil, false, 0
}

func (f *boxFinder) pass(line []byte) []byte {
	if f.then == nil {
		return line
	}
	return f.then(line)
}

type boxed struct {
	io.WriteCloser
	finder *boxFinder
	m      *Merger
}

// Close implements io.Closer.
func (b *boxed) Close() error {
	err := b.WriteCloser.Close()
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	if rest := b.finder.release(); len(rest) > 0 {
		b.m.write(nil, rest) // as for any source, Lost tells whether it was written
	}
	return err
}

package memnet

import "github.com/leidenzipper/zipper/internal/transport"

// Link is one end of a link in memory.
type Link struct {
	in, out *pipe
	remote  string
}

var _ transport.Link = (*Link)(nil)

// TryRead is Link's.
func (l *Link) TryRead(p []byte) (int, error) { return l.in.read(p) }

// TryWrite is Link's.
func (l *Link) TryWrite(bufs ...[]byte) (int, error) { return l.out.write(bufs) }

// FD is Link's.
func (l *Link) FD() int { return l.in.descriptor(&l.in.readable, &l.in.reader) }

// WriteFD is Link's.
func (l *Link) WriteFD() int { return l.out.descriptor(&l.out.writable, &l.out.writer) }

// Arm is Link's.
func (l *Link) Arm() bool { return false }

// Close is Link's. What was written still arrives.
func (l *Link) Close() error {
	l.in.closeReader()
	l.out.closeWriter()
	return nil
}

// Remote is Link's.
func (l *Link) Remote() string { return l.remote }

// Cut breaks the link: every call at both ends fails with ErrCut from now on, and what is on its
// way is lost.
func (l *Link) Cut() {
	l.in.fail(ErrCut)
	l.out.fail(ErrCut)
}

// Hold keeps back what this end has written and not yet arrived, as a network that is stuck;
// Hold(false) lets it go.
func (l *Link) Hold(on bool) { l.out.hold(on) }

// WaitRead blocks until TryRead may make progress. It counts as idle in a synctest bubble.
func (l *Link) WaitRead() { l.in.wait(l.in.canRead) }

// WaitWrite blocks until TryWrite may make progress. It counts as idle in a synctest bubble.
func (l *Link) WaitWrite() { l.out.wait(l.out.canWrite) }

package memnet

import "github.com/leidenzipper/zipper/internal/transport"

// Link is one end of a link in memory.
type Link struct {
	in, out *pipe
	remote  string
}

var _ transport.Link = (*Link)(nil)

// TryRead implements transport.Link.
func (l *Link) TryRead(p []byte) (int, error) { return l.in.read(p) }

// TryWrite implements transport.Link.
func (l *Link) TryWrite(bufs ...[]byte) (int, error) { return l.out.write(bufs) }

// FD implements transport.Link.
func (l *Link) FD() int { return l.in.descriptor(&l.in.readable, &l.in.reader) }

// WriteFD implements transport.Link.
func (l *Link) WriteFD() int { return l.out.descriptor(&l.out.writable, &l.out.writer) }

// Arm implements transport.Link.
func (l *Link) Arm() bool { return false }

// Close implements transport.Link. Written bytes still arrive.
func (l *Link) Close() error {
	l.in.closeReader()
	l.out.closeWriter()
	return nil
}

// Remote implements transport.Link.
func (l *Link) Remote() string { return l.remote }

// Cut breaks the link: from now on every call at both ends fails with ErrCut, and bytes in flight
// are lost.
func (l *Link) Cut() {
	l.in.fail(ErrCut)
	l.out.fail(ErrCut)
}

// Hold delays the bytes in flight from this end, as a stalled network does. Hold(false) delivers
// them.
func (l *Link) Hold(on bool) { l.out.hold(on) }

// WaitRead blocks until TryRead may make progress. It counts as idle in a synctest bubble.
func (l *Link) WaitRead() { l.in.wait(l.in.canRead) }

// WaitWrite blocks until TryWrite may make progress. It counts as idle in a synctest bubble.
func (l *Link) WaitWrite() { l.out.wait(l.out.canWrite) }

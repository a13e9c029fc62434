//go:build rdma && cgo

package verbs

// control is the connection that a link is made over, and that tells its end afterwards; it carries
// none of the link's bytes. There are two, a TCP connection (bytcp.go) and one of the communication
// manager (bycm.go), and they differ in nothing but this. The calls are made in the order place,
// greet, join, ready, proven, end, by one goroutine; refuse instead of any of them, close instead
// or at last.
type control interface {
	// place is the local port of the link.
	place(ports []PortInfo) (Place, error)
	// greet tells the peer about this end, and returns what the peer tells.
	greet(l *link, me *hello) (hello, error)
	// join takes both queue pairs to where they can send and receive. What the peer may do to this
	// link's memory, path has from the options.
	join(l *link, me, peer *hello, patience Options) error
	// ready says that this end has receives posted, and returns when the peer has said so.
	ready() error
	// proven says that the peer's proof has come over the queue pair, and returns when the peer has
	// said so.
	proven() error
	// refuse tells the peer why there is no link; nobody is told if that fails.
	refuse(reason error)
	// end returns when the peer has closed or died, with io.EOF or another cause, or after close.
	end() error
	// close tells the peer that this is the end, and frees everything. It may be called while end
	// blocks.
	close() error

	// interrupt makes all that blocks, now or later, return os.ErrDeadlineExceeded. Any goroutine.
	interrupt()
	remote() string // the peer's address
}

// acceptor takes controls in. One goroutine accepts; any may close.
type acceptor interface {
	accept() (control, error)
	// check sees early whether links can be made at all.
	check(h *host) error
	address() string // HOST:PORT
	close() error    // ends accept
}

//go:build rdma && cgo

package verbs

// control is the connection over which a link is made. Afterwards it shows the end of the peer, and
// carries none of the link's bytes. There are two kinds, a TCP connection (bytcp.go) and one of the
// communication manager (bycm.go), and links differ in nothing else. One goroutine must call place,
// greet, join, ready, proven and end in this order. It may call refuse instead of any of them, and
// close instead or at last.
type control interface {
	// place returns the local port of the link.
	place(ports []PortInfo) (Place, error)
	// greet sends a description of this end to the peer, and returns the peer's.
	greet(l *link, me *hello) (hello, error)
	// join takes both queue pairs to the states in which they can send and receive. patience has
	// the time-outs of the path.
	join(l *link, me, peer *hello, patience Options) error
	// ready tells the peer that this end has receives posted, and waits until the peer has said the
	// same.
	ready() error
	// proven tells the peer that its nonce has arrived over the queue pair, and waits until the
	// peer has said the same.
	proven() error
	// refuse tells the peer the reason for which there is no link. Errors are ignored.
	refuse(reason error)
	// end waits until the peer has closed or died, and returns io.EOF or another cause. It also
	// returns after close.
	end() error
	// close tells the peer that this is the end, and frees everything. It may be called while end
	// blocks.
	close() error

	// interrupt makes all blocking calls, now or later, return os.ErrDeadlineExceeded. Any
	// goroutine may call it.
	interrupt()
	remote() string // the peer's address
}

// acceptor accepts controls. One goroutine may call accept; any may call close.
type acceptor interface {
	accept() (control, error)
	// check returns early errors for hosts on which no link can be made.
	check(h *host) error
	address() string // HOST:PORT
	close() error    // ends accept
}

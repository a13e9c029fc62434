package dial

import (
	"context"
	"net"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/addr"
	"github.com/leidenzipper/zipper/internal/transport/command"
	"github.com/leidenzipper/zipper/internal/transport/shm"
	"github.com/leidenzipper/zipper/internal/transport/tcp"
	"github.com/leidenzipper/zipper/internal/transport/verbs"
)

// Unmaps reports the memory that the program unmaps.
type Unmaps = verbs.Unmaps

// pick returns the transport for the form of an address, and the address in the transport's form.
func pick(at string, unmaps Unmaps) (transport.Dialer, string) {
	kind, target := addr.Split(at)
	switch kind {
	case addr.KindMemory:
		return shm.Dialer{}, target
	case addr.KindVerbs:
		return verbs.Dialer{Options: verbs.Options{Unmaps: unmaps}}, target
	}
	return tcp.Dialer{}, target
}

// Open connects to an address. It retries until ctx ends, or for a minute if ctx has no end. It
// does no handshake. failed is called with the error of each attempt. Forwarders connect to each
// other with Open.
func Open(ctx context.Context, at string, failed func(error)) (transport.Link, error) {
	td, target := pick(at, nil)
	return connect(ctx, td, target, openLimit(ctx), failed)
}

// openLimit returns the time limit of ctx, or a minute if it has none.
func openLimit(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return time.Until(end)
	}
	return openTime
}

// Through is Open with a shell command whose standard input and output are the link: ssh -W
// HOST:PORT, or a similar one. tell is called with each line of the command's standard error. No
// address stands for a command, because a user who may name addresses may not be allowed to run
// commands.
func Through(ctx context.Context, line string, tell func(line string), failed func(error)) (transport.Link, error) {
	return connect(ctx, command.Dialer{Tell: tell}, line, openLimit(ctx), failed)
}

// Once connects to an address and tries only once.
func Once(ctx context.Context, at string) (transport.Link, error) {
	td, target := pick(at, nil)
	return td.Dial(ctx, target)
}

// Listening accepts links at a TCP socket that listens already. It closes the given listener.
func Listening(l *net.TCPListener) (transport.Listener, error) {
	taken, err := tcp.From(l)
	if err != nil {
		return nil, err // a nil pointer would not be a nil Listener
	}
	return taken, nil
}

// Listen accepts links at an address. For TCP and verbs an empty host means all addresses, port 0
// any free port. A verbs address fails if this host has no RDMA port for it. Only this user may
// open a unix: path.
func Listen(at string) (transport.Listener, error) {
	kind, target := addr.Split(at)
	switch kind { // each case returns by itself, because a nil pointer would not be a nil Listener
	case addr.KindMemory:
		l, err := shm.Listen(target, 0)
		if err != nil {
			return nil, err
		}
		return l, nil
	case addr.KindVerbs:
		l, err := verbs.Listen(target, verbs.Options{})
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	l, err := tcp.Listen(target)
	if err != nil {
		return nil, err
	}
	return l, nil
}

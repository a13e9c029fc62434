package netgauge

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/shm"
)

// linkEndpoint moves messages over one of our own transports, and waits as the engine does: it
// spins, then polls.
type linkEndpoint struct {
	rank int
	l    transport.Link
}

func (e *linkEndpoint) Rank() int    { return e.rank }
func (e *linkEndpoint) Size() int    { return 2 }
func (e *linkEndpoint) Close() error { return e.l.Close() }

func (e *linkEndpoint) Send(_ int, b []byte) error {
	return e.move(b, unix.POLLOUT, e.l.WriteFD(), func(b []byte) (int, error) { return e.l.TryWrite(b) })
}

func (e *linkEndpoint) Recv(_ int, b []byte) error {
	return e.move(b, unix.POLLIN, e.l.FD(), e.l.TryRead)
}

func (e *linkEndpoint) move(b []byte, events int16, fd int, try func([]byte) (int, error)) error {
	for spins := 0; len(b) > 0; {
		n, err := try(b)
		b = b[n:]
		switch {
		case err == nil:
			spins = 0
		case !errors.Is(err, transport.ErrAgain):
			if errors.Is(err, io.EOF) {
				return errors.New("the other process has ended")
			}
			return err
		case spins < 200:
			spins++
		case events == unix.POLLOUT || !e.l.Arm():
			p := []unix.PollFd{{Fd: int32(fd), Events: events}}
			if _, err := unix.Poll(p, 1000); err != nil && err != unix.EINTR {
				return err
			}
		}
	}
	return nil
}

func shmModule() Module {
	return linkModule("shm",
		"the shared-memory transport, two processes of one host; the first address is a socket path", shm.Dialer{},
		func(addr string) (transport.Listener, error) { return shm.Listen(addr, 0) })
}

// linkModule returns a module over one of our transports between two processes: rank 0 listens at
// the first address.
func linkModule(name, about string, d transport.Dialer, listen func(addr string) (transport.Listener, error)) Module {
	return Module{Name: name, About: about, Offers: Reliable,
		Open: func(ctx context.Context, p Place) (Endpoint, error) {
			if p.Rank == 0 {
				ln, err := listen(p.Addrs[0])
				if err != nil {
					return nil, err
				}
				l, err := acceptOne(ctx, ln)
				if err != nil {
					return nil, err
				}
				return &linkEndpoint{0, l}, nil
			}
			l, err := retryDial(ctx, func() (transport.Link, error) { return d.Dial(ctx, p.Addrs[0]) })
			if err != nil {
				return nil, err
			}
			return &linkEndpoint{1, l}, nil
		}}
}

package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/simulation/kernel"
)

// join opens a link to the forwarder t and completes the handshake on it, as package dial does over
// a real network. It returns an error if nothing arrives for the time silence. The caller must be a
// thread of the rank.
func (r *Member) join(ctx context.Context, t dial.Target, silence time.Duration) (transport.Link, error) {
	link, err := r.world.Dial(ctx, r.Proc, t.Address)
	if err != nil {
		return nil, err
	}
	if err := r.exchange(ctx, link, t.ID, silence); err != nil {
		link.Close()
		return nil, err
	}
	return link, nil
}

var errSilent = errors.New("no answer from the forwarder")

func (r *Member) exchange(ctx context.Context, l *kernel.End, id handshake.Identity, silence time.Duration) error {
	m, err := handshake.NewJoiner(id, [wire.NonceLen]byte{1})
	if err != nil {
		return err
	}
	return r.converse(ctx, l, m, silence, func(e handshake.Event) (over bool, err error) {
		switch e.Kind {
		case handshake.Ended:
			return false, e.Err
		case handshake.Asked:
			m.Inside(r.inside())
		case handshake.Joined:
			return true, nil
		}
		return false, nil
	})
}

// converse drives handshake m on connection l until handle, which gets its events, returns true or
// an error. It returns an error if nothing arrives for the time silence.
func (r *Member) converse(ctx context.Context, l *kernel.End, m handshake.Machine, silence time.Duration,
	handle func(handshake.Event) (over bool, err error)) error {
	over := false
	for {
		err := handshake.Drive(m, func(frame []byte) error { return r.write(ctx, l, frame, silence) }, func(e handshake.Event) error {
			done, err := handle(e)
			over = over || done
			return err
		})
		if err != nil || over {
			return err
		}
		var head [wire.HeaderLen]byte
		if err := r.read(ctx, l, head[:], silence); err != nil {
			return err
		}
		h, err := wire.ParseHeader(head[:])
		if err != nil {
			return err
		}
		body := make([]byte, h.Length)
		if err := r.read(ctx, l, body, silence); err != nil {
			return err
		}
		if err := h.Verify(body); err != nil {
			return err
		}
		m.HandleMessage(h, body)
	}
}

// cancelPoll is the longest time for which await sleeps before it checks whether the attempt has
// been cancelled.
const cancelPoll = 100 * time.Millisecond

// await has the running thread sleep until one of the poll events is ready on connection l. It
// returns an error if ctx ends, or if the time silence is over.
func (r *Member) await(ctx context.Context, l *kernel.End, events int16, silence time.Duration) error {
	set := []unix.PollFd{{Fd: int32(l.FD()), Events: events}}
	for end := r.System.Now() + silence; ; {
		r.System.Poll(set, min(cancelPoll, end-r.System.Now()), false)
		switch {
		case set[0].Revents != 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case r.System.Now() >= end:
			return errSilent
		}
	}
}

func (r *Member) read(ctx context.Context, l *kernel.End, p []byte, silence time.Duration) error {
	for len(p) > 0 {
		n, err := l.TryRead(p)
		if err == transport.ErrAgain {
			err = r.await(ctx, l, unix.POLLIN, silence)
		}
		if err != nil {
			return fmt.Errorf("while joining: %w", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p = p[n:]
	}
	return nil
}

func (r *Member) write(ctx context.Context, l *kernel.End, p []byte, silence time.Duration) error {
	for len(p) > 0 {
		n, err := l.TryWrite(p)
		if err == transport.ErrAgain {
			err = r.await(ctx, l, unix.POLLOUT, silence)
		}
		if err != nil {
			return fmt.Errorf("while joining: %w", err)
		}
		p = p[n:]
	}
	return nil
}

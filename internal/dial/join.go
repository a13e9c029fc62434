package dial

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/highfd"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// join runs the rank's side of the handshake on a new link. It blocks until the job is complete,
// the rank is refused, or ctx ends. notify, if not nil, is called with each list of missing ranks
// from the forwarder. inside, if not nil, returns the IP address and port at which the process
// accepts connections that the forwarder's kernel passes on, or "". The join fails if the forwarder
// sends nothing for too long; it pings waiting ranks. join reads no byte beyond the Layout, and
// leaves the link open in any case.
func join(ctx context.Context, l transport.Link, id handshake.Identity, quiet silence, notify func(string),
	inside func() string) (handshake.Event, error) {
	var fresh [wire.NonceLen]byte
	_, _ = rand.Read(fresh[:]) // never fails
	m, err := handshake.NewJoiner(id, fresh)
	if err != nil {
		return handshake.Event{}, err
	}
	return run(ctx, l, m, wire.MaxLength, quiet, func(e handshake.Event) {
		switch {
		case e.Kind == handshake.Notified && notify != nil:
			notify(e.Text)
		case e.Kind == handshake.Asked && inside != nil:
			m.Inside(inside())
		case e.Kind == handshake.Asked:
			m.Inside("")
		}
	})
}

// Meet runs either side of the handshake on a new direct link. It blocks until the other end is
// known, refused, or ctx ends, and returns the other end's virtual rank. It reads no byte beyond
// the handshake, and leaves the link open in any case.
func Meet(ctx context.Context, l transport.Link, m *handshake.Meeting) (rank int, err error) {
	e, err := run(ctx, l, m, meetLength, silence{}, nil)
	return e.To, err
}

// silence has time limits without any byte; 0 means no limit.
type silence struct {
	between time.Duration // limit between two frames
	within  time.Duration // limit within a frame, which the other end sends at once, and before the first frame
}

// run executes the state machine until its last event, which it returns; for an event Ended it
// returns the event's error. It passes events Notified and Asked to do. Frames with more than most
// bytes after the header are errors.
func run(ctx context.Context, l transport.Link, m handshake.Machine, most int, quiet silence,
	do func(handshake.Event)) (handshake.Event, error) {
	b, err := newBlocking(ctx, l, quiet)
	if err != nil {
		return handshake.Event{}, err
	}
	defer b.close()
	var last handshake.Event
	over := false
	on := func(e handshake.Event) error {
		switch e.Kind {
		case handshake.Notified, handshake.Asked:
			do(e)
		case handshake.Ended:
			return e.Err
		default:
			last, over = e, true
		}
		return nil
	}
	for {
		if err := handshake.Drive(m, b.write, on); err != nil || over {
			return last, err
		}
		h, body, err := b.readFrame(most)
		if err != nil {
			return handshake.Event{}, err
		}
		m.HandleMessage(h, body)
	}
}

// blocking turns a link's calls into blocking ones. They end with a context, or if no byte can be
// read or written for too long.
type blocking struct {
	ctx     context.Context
	link    transport.Link
	quiet   silence
	silence time.Duration // the limit of quiet that applies now
	cancel  int           // eventfd that becomes readable when ctx ends
	stop    func() bool
	done    chan struct{} // closed when the context's callback has run
}

func newBlocking(ctx context.Context, l transport.Link, quiet silence) (*blocking, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	fd = highfd.Raise(fd)
	b := &blocking{ctx: ctx, link: l, quiet: quiet, silence: quiet.within, cancel: fd, done: make(chan struct{})}
	b.stop = context.AfterFunc(ctx, func() {
		defer close(b.done)
		_, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // cannot fail: the counter is 0
	})
	return b, nil
}

func (b *blocking) close() {
	if !b.stop() {
		<-b.done
	}
	unix.Close(b.cancel)
}

func (b *blocking) wait(fd int, events int16) error {
	p := [2]unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(b.cancel), Events: unix.POLLIN}}
	began := time.Now()
	for {
		limit := -1
		if b.silence > 0 {
			limit = int(max(0, b.silence-time.Since(began)).Milliseconds()) + 1
		}
		n, err := unix.Poll(p[:], limit)
		switch {
		case b.ctx.Err() != nil:
			return b.ctx.Err()
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("poll %s: %w", b.link.Remote(), err)
		case n > 0:
			return nil
		default:
			return fmt.Errorf("has accepted the connection, but has sent nothing for %v during the join: is it stopped, cut off, or not a forwarder's port for ranks?", b.silence)
		}
	}
}

func (b *blocking) readFull(p []byte) error {
	for len(p) > 0 {
		n, err := b.link.TryRead(p)
		switch {
		case err == transport.ErrAgain:
			if !b.link.Arm() {
				if err := b.wait(b.link.FD(), unix.POLLIN); err != nil {
					return err
				}
			}
		case errors.Is(err, io.EOF):
			return errors.New("closed the connection during the join (its log says why, if this is a port of a forwarder for ranks)")
		case err != nil:
			return err
		}
		if n > 0 {
			b.silence = b.quiet.within
		}
		p = p[n:]
	}
	return nil
}

func (b *blocking) readFrame(most int) (wire.Header, []byte, error) {
	defer func() { b.silence = b.quiet.between }()
	var head [wire.HeaderLen]byte
	if err := b.readFull(head[:]); err != nil {
		return wire.Header{}, nil, err
	}
	h, err := wire.ParseHeader(head[:])
	if err == nil && int(h.Length) > most {
		err = fmt.Errorf("%v frame of %d bytes", h.Type, h.Length)
	}
	if err != nil {
		return wire.Header{}, nil, fmt.Errorf("answers, but not as a forwarder does: %w", err)
	}
	body := make([]byte, h.Length)
	if err := b.readFull(body); err != nil {
		return h, nil, err
	}
	if err := h.Verify(body); err != nil {
		return h, nil, fmt.Errorf("%v frame: %w", h.Type, err)
	}
	return h, body, nil
}

func (b *blocking) write(p []byte) error {
	for len(p) > 0 {
		n, err := b.link.TryWrite(p)
		if err == transport.ErrAgain {
			err = b.wait(b.link.WriteFD(), unix.POLLOUT)
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

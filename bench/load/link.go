package load

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// link is one simulated rank. Ranks of the first half start messages, and those of the second half
// return each one.
type link struct {
	conn   net.Conn
	in     *bufio.Reader
	rank   uint32
	peer   uint32
	starts bool

	// mu guards out, because the measurement and the reader write.
	mu  sync.Mutex
	out *bufio.Writer
	// frame is the whole message with its header.
	frame []byte
	seq   uint64
	// got is the number of bytes of frames until the rank had joined.
	got int

	// going tells the reader to start a new message for each one that returns.
	going atomic.Bool
	// slow tells the reader to stop at the next message until gate is closed.
	slow atomic.Bool
	gate chan struct{}
	// bye is closed at ByeAck.
	bye  chan struct{}
	idle *sync.WaitGroup
	// ended gets the reader's error.
	ended chan error

	// The reader owns the following fields while messages are in flight, and the measurement
	// otherwise. began has the start times of the messages in flight, in a ring.
	began  []time.Time
	oldest int
	// trips counts round trips.
	trips int64
	// latency has half the round trip of each of the last trips.
	latency []time.Duration
}

func (l *link) connected(c net.Conn) {
	l.conn, l.in, l.out = c, bufio.NewReaderSize(c, linkBuffer), bufio.NewWriterSize(c, linkBuffer)
}

// join takes part in the exchange. It calls asked when the Join is sent, or will not be.
func (l *link) join(id handshake.Identity, asked func()) error {
	asked = sync.OnceFunc(asked)
	defer asked()
	var fresh [wire.NonceLen]byte
	_, _ = rand.Read(fresh[:]) // never fails
	m, err := handshake.NewJoiner(id, fresh)
	if err != nil {
		return err
	}
	joined := false
	for !joined {
		h, body, err := l.read()
		if err != nil {
			return fmt.Errorf("rank %d joins: %w", l.rank, err)
		}
		l.got += wire.HeaderLen + len(body)
		m.HandleMessage(h, body)
		err = handshake.Drive(m, func(frame []byte) error {
			_, err := l.conn.Write(frame)
			return err
		}, func(e handshake.Event) error {
			if e.Kind == handshake.Ended {
				return e.Err
			}
			joined = e.Kind == handshake.Joined
			return nil
		})
		asked()
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads one frame; the body is a copy.
func (l *link) read() (wire.Header, []byte, error) {
	h, err := l.header()
	if err != nil {
		return h, nil, err
	}
	body := make([]byte, h.Length)
	_, err = io.ReadFull(l.in, body)
	return h, body, err
}

func (l *link) header() (wire.Header, error) {
	b, err := l.in.Peek(wire.HeaderLen)
	if err != nil {
		return wire.Header{}, err
	}
	h, err := wire.ParseHeader(b)
	if err == nil {
		_, err = l.in.Discard(wire.HeaderLen)
	}
	return h, err
}

// serve reads until the link ends.
func (l *link) serve() {
	l.ended <- l.frames()
}

func (l *link) frames() error {
	for {
		if l.in.Buffered() < wire.HeaderLen { // the next read waits
			if err := l.flush(); err != nil {
				return err
			}
		}
		h, err := l.header()
		if err != nil {
			select {
			case <-l.bye:
				return nil
			default:
				return fmt.Errorf("rank %d: %w", l.rank, err)
			}
		}
		if _, err = l.in.Discard(int(h.Length)); err != nil {
			return fmt.Errorf("rank %d: %w", l.rank, err)
		}
		switch h.Type {
		case wire.TypePing:
			err = l.control(wire.TypePong)
		case wire.TypeByeAck:
			close(l.bye)
			return nil
		case wire.TypeAbort, wire.TypeBye:
			return fmt.Errorf("rank %d: the forwarder ended the job", l.rank)
		case wire.TypeEager:
			err = l.message()
		}
		if err != nil {
			return err
		}
	}
}

func (l *link) message() error {
	if l.slow.Load() {
		<-l.gate
	}
	if l.starts {
		going := l.going.Load() // read before the fields that were written before it was set
		l.latency[l.trips%keep] = time.Since(l.began[l.oldest]) / 2
		l.trips++
		if !going {
			l.oldest = (l.oldest + 1) % len(l.began)
			l.idle.Done()
			return nil
		}
		l.began[l.oldest] = time.Now()
		l.oldest = (l.oldest + 1) % len(l.began)
	}
	return l.send(1)
}

// send writes n messages; they may wait in the buffer until flush.
func (l *link) send(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		l.seq++
		h := wire.Header{Type: wire.TypeEager, Epoch: 1, Length: uint32(len(l.frame) - wire.HeaderLen), Src: l.rank,
			Dst: l.peer, Seq: l.seq}
		h.Append(l.frame[:0])
		if _, err := l.out.Write(l.frame); err != nil {
			return err
		}
	}
	return nil
}

func (l *link) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Flush()
}

func (l *link) control(t wire.Type) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Flush returns the error.
	l.out.Write(wire.AppendFrame(nil, wire.Control(t), nil))
	return l.out.Flush()
}

// flood sends segments to a peer that does not read, as many as a rank's credit allows. It returns
// when they are written.
func (l *link) flood(total int) error {
	d := wire.Data{}
	for sent := 0; sent < total; sent += floodSegment {
		h := wire.Header{Type: wire.TypeData, Epoch: 1, Length: wire.DataLen + floodSegment, Src: l.rank, Dst: l.peer}
		b := append(d.Append(h.Append(nil)), make([]byte, floodSegment)...)
		l.mu.Lock()
		_, err := l.conn.Write(b)
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// leave sends Bye and waits for the answer.
func (l *link) leave(patience time.Duration) error {
	if err := l.control(wire.TypeBye); err != nil {
		return err
	}
	select {
	case err := <-l.ended:
		return err
	case <-time.After(patience):
		return errors.New("no answer to Bye")
	}
}

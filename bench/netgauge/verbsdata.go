//go:build rdma && cgo

package netgauge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/internal/transport/addr"
	transport "github.com/leidenzipper/zipper/internal/transport/verbs"
)

const (
	sendTime   = 10 * time.Second // for the adapter to send
	verbsSlots = 16               // posted receives
	verbsSlot  = verbsMessage + verbs.GRH
	verbsSend  = verbsSlots * verbsSlot // the place of the message to send
)

// verbsEnd is one process's data for the other, sent over TCP.
type verbsEnd struct {
	QPN, PSN   uint32
	LID        uint16
	MTU        uint8
	InfiniBand bool
	GID        [16]byte
}

// verbsPackets is a queue pair of an unreliable service whose messages are packets.
type verbsPackets struct {
	cleanup []func() error
	mr      *verbs.MR
	ch      *verbs.CompChannel
	cq      *verbs.CQ
	qp      *verbs.QP
	// head is the number of bytes before the payload.
	head int
	// limit is the largest message in bytes.
	limit   int
	sending bool
	// arrived has receives that no call has read yet.
	arrived []verbs.Completion
}

// openVerbsPackets connects two processes: they meet over TCP at the first address and exchange the
// data of their queue pairs.
func openVerbsPackets(ctx context.Context, p Place, service verbs.Service) (Endpoint, error) {
	a, err := addr.ParseVerbs(p.Addrs[0])
	if err != nil {
		return nil, err
	}
	if a.CM {
		return nil, fmt.Errorf("%s: connect=cm is for reliable connections (verbs) only", p.Addrs[0])
	}
	conn, err := meetOverTCP(ctx, a.Host, p.Rank)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	at, err := transport.Locate(a, conn.LocalAddr())
	if err != nil {
		return nil, err
	}
	v := &verbsPackets{}
	if err := v.open(at, service); err != nil {
		return nil, errors.Join(err, v.close())
	}
	if err := v.connect(conn, at, service); err != nil {
		return nil, errors.Join(first(ctx.Err(), err), v.close())
	}
	d := &packets{rank: p.Rank, write: v.write, read: v.read, close: v.close, in: make([]byte, verbsSlot),
		limit: v.limit}
	return greet(ctx, d)
}

// meetOverTCP has rank 0 listen and rank 1 dial until rank 0 answers.
func meetOverTCP(ctx context.Context, addr string, rank int) (net.Conn, error) {
	if rank > 0 {
		return dial(ctx, "tcp", addr)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return acceptOne(ctx, l)
}

func (v *verbsPackets) open(at transport.Place, service verbs.Service) error {
	x, err := verbs.Open(at.Device)
	if err != nil {
		return err
	}
	v.onClose(x.Close)
	pd, err := x.NewPD()
	if err != nil {
		return err
	}
	v.onClose(pd.Close)
	mem, err := unix.Mmap(-1, 0, verbsSend+verbsSlot, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("map memory: %w", err)
	}
	v.onClose(func() error { return unix.Munmap(mem) })
	if v.mr, err = pd.Register(mem, verbs.LocalWrite); err != nil {
		return err
	}
	v.onClose(v.mr.Close)
	if v.ch, err = x.NewCompChannel(); err != nil {
		return err
	}
	v.onClose(v.ch.Close)
	if v.cq, err = x.NewCQ(verbsSlots+1, v.ch); err != nil {
		return err
	}
	v.onClose(v.cq.Close)
	if v.qp, err = pd.NewQP(verbs.QPConfig{Service: service, SendCQ: v.cq, RecvCQ: v.cq, Sends: 1,
		Recvs: verbsSlots}); err != nil {
		return err
	}
	v.onClose(v.qp.Close)
	if err := v.qp.Init(at.Port, at.PKey, 0); err != nil {
		return err
	}
	for i := range verbsSlots {
		if err := v.qp.PostRecv(uint64(i), verbs.Range{MR: v.mr, Off: i * verbsSlot, Len: verbsSlot}); err != nil {
			return err
		}
	}
	return nil
}

func (v *verbsPackets) connect(conn net.Conn, at transport.Place, service verbs.Service) error {
	mine := verbsEnd{QPN: v.qp.Num(), PSN: 1, LID: at.LID, MTU: at.MTU, InfiniBand: at.InfiniBand, GID: at.GID.GID}
	var peer verbsEnd
	if err := first(binary.Write(conn, binary.LittleEndian, mine),
		binary.Read(conn, binary.LittleEndian, &peer)); err != nil {
		return fmt.Errorf("exchange of queue pairs: %w", err)
	}
	if peer.InfiniBand != mine.InfiniBand {
		return errors.New("one port is InfiniBand, the other Ethernet (RoCE)")
	}
	mtu := min(mine.MTU, peer.MTU)
	v.limit = verbsMessage
	if service == verbs.Datagram {
		v.head, v.limit = verbs.GRH, 128<<min(mtu, 5)
	}
	if err := v.qp.Connect(verbs.Path{Port: at.Port, GIDIndex: at.GID.Index, Global: !at.InfiniBand, DGID: peer.GID,
		DLID: peer.LID, SL: at.SL, MTU: verbs.MTU(mtu),
		QPN: peer.QPN, SendPSN: mine.PSN, RecvPSN: peer.PSN}); err != nil {
		return err
	}
	// Both are ready before either sends.
	if _, err := conn.Write([]byte{1}); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	return err
}

func (v *verbsPackets) onClose(f func() error) { v.cleanup = append(v.cleanup, f) }

// close undoes open in the reverse order.
func (v *verbsPackets) close() (err error) {
	for len(v.cleanup) > 0 {
		last := len(v.cleanup) - 1
		err = errors.Join(err, v.cleanup[last]())
		v.cleanup = v.cleanup[:last]
	}
	return err
}

func (v *verbsPackets) write(b []byte) error {
	copy(v.mr.Bytes()[verbsSend:], b)
	if err := v.qp.Post(verbs.Request{ID: verbsSlots, Op: verbs.Send, Flags: verbs.Signaled,
		Local: verbs.Range{MR: v.mr, Off: verbsSend, Len: len(b)}}); err != nil {
		return err
	}
	v.sending = true
	return v.until(time.Now().Add(sendTime), func() bool { return !v.sending })
}

func (v *verbsPackets) read(b []byte) (int, error) {
	if err := v.until(time.Now().Add(lossTimeout), func() bool { return len(v.arrived) > 0 }); err != nil {
		return 0, err
	}
	c := v.arrived[0]
	v.arrived = v.arrived[1:]
	at := verbs.Range{MR: v.mr, Off: int(c.ID) * verbsSlot, Len: verbsSlot}
	n := copy(b, v.mr.Bytes()[at.Off+v.head:at.Off+max(c.Len, v.head)])
	return n, v.qp.PostRecv(c.ID, at)
}

// until handles completions until done returns true. It returns os.ErrDeadlineExceeded after limit.
func (v *verbsPackets) until(limit time.Time, done func() bool) error {
	var buf [verbsSlots + 1]verbs.Completion
	for spins := 0; !done(); spins++ {
		n, err := v.cq.Poll(buf[:])
		if err != nil {
			return err
		}
		for _, c := range buf[:n] {
			switch {
			case c.Status != 0:
				return fmt.Errorf("queue pair: %w", c.Status)
			case c.ID == verbsSlots:
				v.sending = false
			default:
				v.arrived = append(v.arrived, c)
			}
		}
		if n > 0 || spins < 200 {
			continue
		}
		left := time.Until(limit)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		// The loop runs again first, because a completion may have come before the notice was
		// requested.
		if spins%2 == 0 {
			if err := v.cq.Notify(false); err != nil {
				return err
			}
			continue
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(v.ch.FD()), Events: unix.POLLIN}},
			int(left.Milliseconds())+1); err != nil && err != unix.EINTR {
			return err
		}
		if _, err := v.ch.Event(); err != nil {
			return err
		}
	}
	return nil
}

func openUC(ctx context.Context, p Place) (Endpoint, error) {
	return openVerbsPackets(ctx, p, verbs.Unreliable)
}

func openUD(ctx context.Context, p Place) (Endpoint, error) {
	return openVerbsPackets(ctx, p, verbs.Datagram)
}

//go:build rdma && cgo

package verbs

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/transport/internal/evfd"
)

// newLink makes this end's queue pairs and memory. It takes over a reference of the device, not the connection.
func newLink(d *device, p Place, conn *net.TCPConn, o Options) (*link, error) {
	l := &link{d: d, place: p, conn: conn, remote: "verbs " + conn.RemoteAddr().String(), room: -1}
	if err := l.open(o); err != nil {
		return nil, errors.Join(err, l.destroy())
	}
	return l, nil
}

// open makes the parts. After an error destroy frees what was made.
func (l *link) open(o Options) (err error) {
	if err = l.d.add(l); err != nil {
		return err
	}
	ring := o.Slots * o.SlotSize
	if l.mem, err = unix.Mmap(-1, 0, 2*ring, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return fmt.Errorf("map %d bytes: %w", 2*ring, err)
	}
	if l.arena, err = newArena(o.Blocks, o.BlockSize); err != nil {
		return err
	}
	if l.pd, err = l.d.ctx.NewPD(); err != nil {
		return err
	}
	l.sources, l.targets = registered(l.d.pd, 0, o.Unmaps), registered(l.pd, verbs.LocalWrite|verbs.RemoteWrite, o.Unmaps)
	if l.in.mr, err = l.pd.Register(l.mem[:ring], verbs.LocalWrite); err != nil {
		return err
	}
	if l.window, err = l.pd.Register(l.arena.mem, verbs.LocalWrite|verbs.RemoteWrite); err != nil {
		return err
	}
	if l.out.mr, err = l.d.pd.Register(l.mem[ring:], verbs.LocalWrite); err != nil {
		return err
	}
	if err = l.in.open(l, o); err != nil {
		return err
	}
	if err = l.out.open(l.d, o); err != nil {
		return err
	}
	if l.room, err = evfd.New(); err != nil {
		return err
	}
	l.credit, err = newWaiter(l.out.ch.FD(), "completions")
	return err
}

// establish makes the link over a TCP connection, the same way at both ends. It takes over a reference of the
// device and, if it succeeds, the connection.
func establish(ctx context.Context, conn *net.TCPConn, d *device, p Place, o Options) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Proof)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	l, err := newLink(d, p, conn, o)
	if err != nil {
		refuse(conn, err)
		return nil, err
	}
	if err := l.connect(ctx, o); err != nil {
		var told refusal
		if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil {
			err = fmt.Errorf("connection exchange with %s: %w", conn.RemoteAddr(), ctx.Err())
		} else if !errors.As(err, &told) {
			conn.SetDeadline(time.Now().Add(time.Second))
			refuse(conn, err)
		}
		return nil, errors.Join(err, l.destroy())
	}
	if !stop() { // the context has ended: the deadline is set or about to be
		return nil, errors.Join(ctx.Err(), l.destroy())
	}
	l.run()
	return l, nil
}

// connect runs the exchange of hello.go.
func (l *link) connect(ctx context.Context, o Options) error {
	me := hello{mtu: l.place.MTU, lid: l.place.LID, slots: uint32(o.Slots), slotSize: uint32(o.SlotSize), gid: l.place.GID.GID,
		out: endpoint{l.out.qp.Num(), number()}, in: endpoint{l.in.qp.Num(), number()},
		blocks: remoteBlocks{uint32(o.Blocks), uint32(o.BlockSize), l.window.Addr(), l.window.RKey()}}
	if me.layer = uint8(verbs.Ethernet); l.place.InfiniBand {
		me.layer = uint8(verbs.InfiniBand)
	}
	rand.Read(me.nonce[:])
	if err := send(l.conn, kindHello, me.append(nil)); err != nil {
		return err
	}
	b, err := receive(l.conn, kindHello)
	if err != nil {
		return err
	}
	peer, err := parseHello(b)
	if err != nil {
		return err
	}
	if peer.layer != me.layer {
		return permanent{errors.New("one port is InfiniBand, the other Ethernet (RoCE): they cannot be on one fabric")}
	}
	path := verbs.Path{Port: l.place.Port, GIDIndex: l.place.GID.Index, DGID: peer.gid, DLID: peer.lid, SL: l.place.SL, MTU: verbs.MTU(min(me.mtu, peer.mtu)),
		// On InfiniBand a global route is for another subnet.
		Global: !l.place.InfiniBand || [8]byte(peer.gid[:]) != [8]byte(me.gid[:]), Timeout: o.Timeout, Retries: 7}
	for _, half := range []struct {
		qp         *verbs.QP
		mine, them endpoint
		remote     verbs.Access // what the peer may do: write to this link's blocks, the only such memory of its domain
	}{{l.in.qp, me.in, peer.out, verbs.RemoteWrite}, {l.out.qp, me.out, peer.in, 0}} {
		path.QPN, path.SendPSN, path.RecvPSN = half.them.qpn, half.mine.psn, half.them.psn
		if err := half.qp.Init(l.place.Port, l.place.PKey, half.remote); err != nil {
			return err
		}
		if err := half.qp.Connect(path); err != nil {
			return err
		}
	}
	if err := l.in.start(int(peer.slots)); err != nil {
		return err
	}
	if err := l.out.start(&peer); err != nil {
		return err
	}
	if err := send(l.conn, kindReady, nil); err != nil {
		return err
	}
	if _, err := receive(l.conn, kindReady); err != nil {
		return err
	}
	if err := l.prove(ctx, me.nonce, peer.nonce); err != nil {
		return permanent{fmt.Errorf("fabric identity check: TCP connects, but no proof came over the queue pair between %s and the port with LID %d, GID %s: %w. "+
			"Are both ports on one fabric and in one partition? (Fabrics that are not joined may share a subnet prefix; RoCE needs UDP port 4791 open)",
			l.place, peer.lid, netip.AddrFrom16(peer.gid), err)}
	}
	if err := send(l.conn, kindProven, nil); err != nil {
		return err
	}
	_, err = receive(l.conn, kindProven)
	return err
}

// number makes a first packet sequence number.
func number() uint32 {
	var b [4]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint32(b[:]) & 0xffffff
}

// prove sends this end's nonce over the queue pair and waits for the peer's. Neither takes credit.
func (l *link) prove(ctx context.Context, mine, theirs [16]byte) error {
	copy(l.out.bytes(0, len(mine)), mine[:])
	if err := l.out.post(0, len(mine)); err != nil {
		return err
	}
	for l.in.head == l.in.tail || l.out.completed == 0 {
		if ctx.Err() != nil {
			return errors.New("no answer in time")
		}
		if err := errors.Join(l.in.arm(), l.out.cq.Notify(false)); err != nil {
			return err
		}
		if err := l.in.poll(); err != nil {
			return err
		}
		if _, err := l.out.poll(); err != nil {
			return err
		}
		if l.in.head != l.in.tail && l.out.completed > 0 {
			break
		}
		// The end of the context is looked at from time to time; completions wake at once.
		fds := []unix.PollFd{{Fd: int32(l.in.ch.FD()), Events: unix.POLLIN}, {Fd: int32(l.out.ch.FD()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, 50); err != nil && err != unix.EINTR {
			return err
		}
		if _, err := l.in.disarm(); err != nil {
			return err
		}
		if _, err := l.out.ch.Event(); err != nil {
			return err
		}
	}
	a := l.in.ready[0]
	if a.n != len(theirs) || [16]byte(l.in.bytes(a.slot, len(theirs))) != theirs {
		return errors.New("something else answers there")
	}
	l.in.head++
	l.out.allowed++
	return l.in.repost(a.slot)
}

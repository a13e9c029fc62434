//go:build rdma && cgo

package verbs

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/internal/transport/internal/evfd"
)

// readerAccess is the peer's access to memory of the receiving half's domain: it may write to this
// link's blocks, and to places where a receive expects data.
const readerAccess = verbs.RemoteWrite

// newLink creates this end's queue pairs and memory. It takes ownership of a reference to the
// device, but not of the control.
func newLink(d *device, p Place, c control, o Options) (*link, error) {
	l := &link{d: d, place: p, control: c, remote: "verbs " + c.remote(), room: -1}
	l.ref.Free = l.free
	if err := l.open(o); err != nil {
		return nil, errors.Join(err, l.destroy())
	}
	return l, nil
}

// open creates the parts. After an error destroy frees the created ones.
func (l *link) open(o Options) (err error) {
	if err = l.d.add(l); err != nil {
		return err
	}
	ring := o.Slots * o.SlotSize
	if l.mem, err = unix.Mmap(-1, 0, 2*ring, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return fmt.Errorf("map %d bytes: %w", 2*ring, err)
	}
	if l.arena, err = newArena(o.Blocks, o.BlockSize); err != nil {
		return err
	}
	if l.pd, err = l.d.ctx.NewPD(); err != nil {
		return err
	}
	l.sources, l.targets = registered(l.d.pd, 0, o.Unmaps), registered(l.pd, verbs.LocalWrite|verbs.RemoteWrite,
		o.Unmaps)
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

// establish connects the link, in the same way at both ends. It takes ownership of a reference to
// the device and of the control, also if it fails.
func establish(ctx context.Context, c control, d *device, p Place, o Options) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Proof)
	defer cancel()
	stop := context.AfterFunc(ctx, c.interrupt)
	defer stop()
	if o.Timeout == 0 {
		o.Timeout = p.timeout()
	}
	l, err := newLink(d, p, c, o)
	if err != nil {
		c.refuse(err)
		return nil, errors.Join(err, c.close())
	}
	if err := l.connect(ctx, o); err != nil {
		var refused refusal
		if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil {
			err = fmt.Errorf("connection exchange with %s: %w", c.remote(), ctx.Err())
		} else if !errors.As(err, &refused) {
			c.refuse(err)
		}
		return nil, errors.Join(err, c.close(), l.destroy())
	}
	if !stop() { // the context has ended: blocking calls are interrupted or will be soon
		return nil, errors.Join(ctx.Err(), c.close(), l.destroy())
	}
	l.run()
	return l, nil
}

// connect runs the exchange.
func (l *link) connect(ctx context.Context, o Options) error {
	me := hello{mtu: l.place.MTU, lid: l.place.LID, slots: uint32(o.Slots), slotSize: uint32(o.SlotSize),
		gid: l.place.GID.GID,
		out: endpoint{l.out.qp.Num(), number()}, in: endpoint{l.in.qp.Num(), number()},
		blocks: remoteBlocks{uint32(o.Blocks), uint32(o.BlockSize), l.window.Addr(), l.window.RKey()}}
	if me.layer = uint8(verbs.Ethernet); l.place.InfiniBand {
		me.layer = uint8(verbs.InfiniBand)
	}
	rand.Read(me.nonce[:])
	peer, err := l.control.greet(l, &me)
	if err != nil {
		return err
	}
	if err := l.control.join(l, &me, &peer, o); err != nil {
		return err
	}
	if err := l.in.start(int(peer.slots)); err != nil {
		return err
	}
	if err := l.out.start(&peer); err != nil {
		return err
	}
	if err := l.control.ready(); err != nil {
		return err
	}
	if err := l.prove(ctx, me.nonce, peer.nonce); err != nil {
		return permanent{fmt.Errorf("fabric identity check: %s answers, but no proof came over the queue pair between %s and the port there%s: %w. "+
			"Are both ports on one fabric and in one partition? (Fabrics that are not joined may share a subnet prefix; RoCE needs UDP port 4791 open)",
			l.control.remote(), l.place, peer.where(), err)}
	}
	return l.control.proven()
}

// number returns a random first packet sequence number.
func number() uint32 {
	var b [4]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint32(b[:]) & 0xffffff
}

// prove sends this end's nonce over the queue pair and waits for the peer's. Neither uses credit.
func (l *link) prove(ctx context.Context, mine, peers [16]byte) error {
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
		// The end of the context is checked now and then; completions wake at once.
		fds := []unix.PollFd{{Fd: int32(l.in.ch.FD()), Events: unix.POLLIN},
			{Fd: int32(l.out.ch.FD()), Events: unix.POLLIN}}
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
	if a.n != len(peers) || [16]byte(l.in.bytes(a.slot, len(peers))) != peers {
		return errors.New("something else answers there")
	}
	l.in.head++
	l.out.allowed++
	return l.in.repost(a.slot)
}

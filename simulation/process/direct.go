package process

import (
	"context"
	"net/netip"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/simulation/kernel"
)

// Direct links on demand, as package mmpi/boot makes them.

// meetingTime is the time limit of one attempt to make a direct link on demand.
const meetingTime = 2 * time.Second

// lowestInside is the first port at which ranks accept connections that a kernel forwards.
const lowestInside = 2048

// inside makes the process accept connections that a forwarder's kernel forwards, and returns the
// address, or "" if the process has none. Each call returns the same address.
func (r *Member) inside() string {
	if !r.Proc.Address.IsValid() {
		return ""
	}
	at := netip.AddrPortFrom(r.Proc.Address, uint16(lowestInside+r.Rank)).String()
	if !r.listens {
		r.listens = true
		r.Proc.Listen(at, func(e *kernel.End) {
			r.Proc.Go(func() {
				if !r.welcome(e) {
					e.Close()
				}
			})
		})
	}
	return at
}

// welcome completes the handshake with the rank that has opened connection e, and hands the
// connection to the engine. It reports whether the engine has taken it.
func (r *Member) welcome(e *kernel.End) bool {
	k := r.world.K
	for end := k.Now() + meetingTime; r.Engine == nil; k.Sleep(10 * time.Millisecond) {
		if k.Now() > end {
			return false
		}
	}
	w := r.Engine.World()
	mine, _ := w.Place(r.Rank)
	m := handshake.NewResponder(r.key, r.Rank, instance(r.Rank), [wire.NonceLen]byte{2}, func(rank int) bool {
		other, _ := w.Place(rank)
		return other >= 0 && other != mine
	})
	from, err := r.meet(r.Engine.Context(), e, m)
	return err == nil && r.Engine.DirectUp(from, e)
}

// openWay opens the direct link to the rank in a forwarder's Way.
func (r *Member) openWay(ctx context.Context, w wire.Way) (transport.Link, error) {
	e, err := r.world.over(ctx, r.Proc, w.Address)
	if err != nil {
		return nil, err
	}
	at := wire.Door{Rank: w.Rank, Instance: w.Instance, Port: wire.Port{Address: w.Address}}
	if _, err := r.meet(ctx, e, handshake.NewInitiator(r.key, r.Rank, at, [wire.NonceLen]byte{3})); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

var _ engine.WayOpener = (*Member)(nil).openWay

// meet completes the handshake m of a direct link, and returns the rank at the other end.
func (r *Member) meet(ctx context.Context, l *kernel.End, m *handshake.Meeting) (rank int, err error) {
	err = r.converse(ctx, l, m, meetingTime, func(e handshake.Event) (over bool, err error) {
		if e.Kind == handshake.Ended {
			return false, e.Err
		}
		rank = e.To
		return e.Kind == handshake.Paired, nil
	})
	return rank, err
}

// instance returns the number that distinguishes the process of a rank from those of other runs.
func instance(rank int) uint64 { return uint64(rank + 1) }

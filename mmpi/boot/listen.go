package boot

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// A rank on a zipper node listens for direct links at the node's address on another cluster's
// network, and sends the address when it joins. The Layout has the addresses of all listeners, and
// the ranks of the other cluster connect.
//
// A forwarder with --nat asks every rank for a listener on the rank's own network (inside). It
// makes its kernel pass on connections from a port of the forwarder's host to that listener. The
// Layout then has that port as the rank's listener. Otherwise forwarders only carry the addresses.

// listener accepts direct links for this process.
type listener struct {
	at      []transport.Listener
	ports   []wire.Port // addresses in the Join
	within  sync.Once
	address string // result of inside
}

// inside listens on the own cluster's network, where a forwarder's kernel passes connections on. It
// returns the address, or "" if that is impossible, so that messages take the forwarder.
func (ln *listener) inside(here netip.Addr) string {
	ln.within.Do(func() {
		if l, err := dial.Listen(netip.AddrPortFrom(here, 0).String()); err == nil {
			ln.at = append(ln.at, l)
			ln.address = l.Addr()
		}
	})
	return ln.address
}

// listen listens at all addresses of the job that belong to this host. A process on another node
// has none.
func listen(job jobenv.Job) (*listener, error) {
	ln := &listener{}
	has := map[string]bool{job.Cluster: true}
	for _, dual := range job.Dual {
		if has[dual.Cluster] {
			continue // one of several zipper nodes: the address of this one is enough
		}
		l, err := listenFrom(dual.Address)
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			continue
		}
		if err != nil {
			ln.close()
			return nil, failure(engine.ErrArg, "%s: cannot listen at %s: %v", jobenv.VarDual, dual.Address, err)
		}
		ln.at = append(ln.at, l)
		for i, c := range job.Layout {
			if (dual.Cluster == "" || dual.Cluster == c.Name) && !has[c.Name] {
				has[c.Name] = true
				ln.ports = append(ln.ports, wire.Port{Network: uint16(i), Address: l.Addr()})
			}
		}
		has[dual.Cluster] = true
	}
	return ln, nil
}

// listenFrom listens at the address, or at one of the next ports, because several ranks of a node
// have the same address.
func listenFrom(addr string) (transport.Listener, error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	first, err := strconv.Atoi(p)
	if err != nil {
		return nil, err
	}
	for port := first; ; port++ {
		l, err := dial.Listen(net.JoinHostPort(host, strconv.Itoa(port)))
		if first == 0 || !errors.Is(err, syscall.EADDRINUSE) || port-first == portsTried-1 || port == 65535 {
			return l, err
		}
	}
}

func (ln *listener) close() {
	for _, l := range ln.at {
		l.Close()
	}
}

// accept passes links of the ranks that are to connect (those without an Opener) to the engine
// until the engine ends.
func (ln *listener) accept(e *engine.Engine, id *handshake.Identity, direct map[int]engine.Opener) {
	ctx := e.Context()
	context.AfterFunc(ctx, ln.close)
	key := handshake.Key(id.Job, id.Secret)
	expected := func(rank int) bool {
		open, ok := direct[rank]
		return ok && open == nil
	}
	me := e.World().Rank
	meet := func(ctx context.Context, l transport.Link) {
		rank, err := dial.Meet(ctx, l, handshake.NewResponder(key, me, id.Instance, nonce(), expected))
		if err != nil || !e.DirectUp(rank, l) {
			l.Close()
		}
	}
	unknown := &pending{limit: maxPending}
	for _, l := range ln.at {
		go func() {
			for {
				link, err := l.Accept()
				if err != nil {
					if errors.Is(err, transport.ErrClosed) {
						return
					}
					unknown.drop() // most likely out of descriptors
					select {
					case <-ctx.Done():
						return
					case <-time.After(acceptPause):
					}
					continue
				}
				ctx, done := unknown.add(ctx)
				go func() {
					defer done()
					meet(ctx, link)
				}()
			}
		}()
	}
}

package boot

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
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
// A forwarder whose kernel passes connections on asks every rank for a listener on the rank's own
// network (inside). For pairs of ranks that exchange much it makes the kernel pass on connections
// from a port of the forwarder's host to that listener, for a short time.

// listener accepts direct links for this process.
type listener struct {
	mu     sync.Mutex
	at     []transport.Listener
	inside map[netip.Addr]string // results of listenInside, by address of this end of the link
	serves bool                  // connections are accepted, and there are no new listeners

	ports []wire.Port // addresses in the Join
}

// listenInside listens on the own cluster's network, where a forwarder's kernel passes connections
// on. here is the address of this end of the link to the forwarder. It returns the listener's
// address, or "" if that is impossible, so that messages take the forwarder: so do those of ranks
// at a loopback address, to which no rank connects unless it is allowed. It is safe for concurrent
// use.
func (ln *listener) listenInside(here netip.Addr, allow *jobenv.DirectAllow) string {
	allowed := slices.Contains(allow.Hosts, here.String()) ||
		slices.ContainsFunc(allow.Networks, func(p netip.Prefix) bool { return p.Contains(here) })
	if here.IsLoopback() && !allowed {
		return ""
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	at, known := ln.inside[here]
	if known || ln.serves {
		return at
	}
	if l, err := dial.Listen(netip.AddrPortFrom(here, 0).String()); err == nil {
		ln.at, at = append(ln.at, l), l.Addr()
	}
	if ln.inside == nil {
		ln.inside = map[netip.Addr]string{}
	}
	ln.inside[here] = at
	return at
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
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.serves = true
	for _, l := range ln.at {
		l.Close()
	}
}

// all returns the listeners, of which there are no more from now on.
func (ln *listener) all() []transport.Listener {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.serves = true
	return ln.at
}

// accept passes links to the engine until the engine ends: those of the ranks that are to connect
// (those without an Opener), and of ranks that connect on demand.
func (ln *listener) accept(e *engine.Engine, id *handshake.Identity, direct map[int]engine.Opener) {
	ctx := e.Context()
	context.AfterFunc(ctx, ln.close)
	key := handshake.Key(id.Job, id.Secret)
	w := e.World()
	me := w.Rank
	mine, _ := w.Place(me)
	onDemand := func(rank int) bool { // the engine decides whether it takes the link
		other, _ := w.Place(rank)
		return other >= 0 && other != mine
	}
	expected := func(rank int) bool {
		open, ok := direct[rank]
		return ok && open == nil || !ok && onDemand(rank)
	}
	meet := func(ctx context.Context, l transport.Link) {
		rank, err := dial.Meet(ctx, l, handshake.NewResponder(key, me, id.Instance, nonce(), expected))
		if err != nil || !e.DirectUp(rank, l) {
			l.Close()
		}
	}
	unknown := &pending{limit: maxPending}
	for _, l := range ln.all() {
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

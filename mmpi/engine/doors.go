package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	joining "github.com/leidenzipper/zipper/dial"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/transport/tcp"
	"github.com/leidenzipper/zipper/wire"
)

// A rank on a zipper node has doors: it listens at the node's address on another cluster's network, and says so when it joins. The Layout tells all
// ranks of all doors, and those of the other cluster dial. A forwarder with --nat asks every rank for a door on its own network (inside) and has its kernel
// pass on to it what comes to a port of its own, which then is the rank's door in the Layout. Otherwise forwarders carry the addresses and nothing else of this.

// Bounds of making a direct link.
const (
	meetingTime    = 2 * time.Second // for one attempt
	directPatience = 3 * time.Second // that MPI_Init waits for all links of this process; then the rest begins through the forwarder
	doorPorts      = 100             // ports tried, from the one that is named
	maxStrangers   = 64              // connections at a time whose other end is not known yet
)

// doors are the listeners of this process.
type doors struct {
	listeners []*tcp.Listener
	ports     []wire.Port
	within    sync.Once
	address   string
}

// inside opens a door on the own cluster's network, to which a forwarder's kernel passes connections on, and returns its address; empty: it cannot
// be opened, so messages go through the forwarder.
func (d *doors) inside(here netip.Addr) string {
	d.within.Do(func() {
		if l, err := tcp.Listen(netip.AddrPortFrom(here, 0).String()); err == nil {
			d.listeners = append(d.listeners, l)
			d.address = l.Addr()
		}
	})
	return d.address
}

// openDoors listens wherever the job's addresses are this host's. A process on another node has none.
func openDoors(job jobenv.Job) (*doors, error) {
	d := &doors{}
	has := map[string]bool{job.Cluster: true}
	for _, dual := range job.Dual {
		if has[dual.Cluster] {
			continue // several zipper nodes: the address that is this one's is enough
		}
		l, err := listenFrom(dual.Address)
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			continue
		}
		if err != nil {
			d.close()
			return nil, failure(ErrArg, "%s: cannot listen at %s: %v", jobenv.VarDual, dual.Address, err)
		}
		d.listeners = append(d.listeners, l)
		for i, c := range job.Layout {
			if (dual.Cluster == "" || dual.Cluster == c.Name) && !has[c.Name] {
				has[c.Name] = true
				d.ports = append(d.ports, wire.Port{Cluster: uint16(i), Address: l.Addr()})
			}
		}
		has[dual.Cluster] = true
	}
	return d, nil
}

// unopened says which other clusters no rank of this cluster has a door for though addresses were given; empty: there are none.
func unopened(job *jobenv.Job, layout *wire.Layout) string {
	var addrs, closed []string
	for i, c := range job.Layout {
		var given []string
		for _, d := range job.Dual {
			if d.Cluster == c.Name || d.Cluster == "" {
				given = append(given, jobenv.Dual{Address: d.Address}.String())
			}
		}
		opened := slices.ContainsFunc(layout.Doors, func(d wire.Door) bool {
			at, _ := layout.ClusterOf(int(d.Rank))
			return int(d.Cluster) == i && layout.Clusters[at].Name == job.Cluster
		})
		if c.Name != job.Cluster && len(given) > 0 && !opened {
			closed = append(closed, c.Name)
			for _, a := range given {
				if !slices.Contains(addrs, a) {
					addrs = append(addrs, a)
				}
			}
		}
	}
	if closed == nil {
		return ""
	}
	return fmt.Sprintf("no rank of cluster %s takes direct links from cluster %s: no node where they run has the address %s (%s, dual=); messages go through the forwarder",
		job.Cluster, strings.Join(closed, ", "), strings.Join(addrs, " or "), jobenv.VarDual)
}

// listenFrom listens at the address, or at one of the next ports: several ranks of a node have the same address.
func listenFrom(addr string) (*tcp.Listener, error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	first, err := strconv.Atoi(p)
	if err != nil {
		return nil, err
	}
	for port := first; ; port++ {
		l, err := tcp.Listen(net.JoinHostPort(host, strconv.Itoa(port)))
		if first == 0 || !errors.Is(err, syscall.EADDRINUSE) || port-first == doorPorts-1 || port == 65535 {
			return l, err
		}
	}
}

func (d *doors) close() {
	for _, l := range d.listeners {
		l.Close()
	}
}

// openers are the direct links that this process can have. Of two processes with doors for each other the lower rank is dialled.
func openers(id *handshake.Identity, layout *wire.Layout) map[int]Opener {
	key := handshake.Key(id.Job, id.Secret)
	me := int(layout.Rank)
	mine, _ := layout.ClusterOf(me)
	hosting := map[int]bool{} // clusters that we have a door for
	theirs := map[int]wire.Door{}
	for _, d := range layout.Doors {
		c, _ := layout.ClusterOf(int(d.Rank))
		switch {
		case int(d.Rank) == me:
			hosting[int(d.Cluster)] = true
		case c != mine && int(d.Cluster) == mine:
			theirs[int(d.Rank)] = d
		}
	}
	all := map[int]Opener{}
	for rank := 0; len(hosting)+len(theirs) > 0 && rank < layout.Ranks(); rank++ {
		c, _ := layout.ClusterOf(rank)
		door, has := theirs[rank]
		switch {
		case c != mine && hosting[c] && (!has || me < rank):
			all[rank] = nil
		case has:
			all[rank] = func(ctx context.Context) (transport.Link, error) {
				return visit(ctx, door, func() *handshake.Meeting { return handshake.NewGuest(key, me, door, nonce()) })
			}
		}
	}
	return all
}

// visit dials a door.
func visit(ctx context.Context, door wire.Door, guest func() *handshake.Meeting) (transport.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, meetingTime)
	defer cancel()
	l, err := tcp.Dialer{}.Dial(ctx, door.Address)
	if err != nil {
		return nil, err
	}
	if _, err := joining.Meet(ctx, l, guest()); err != nil {
		l.Close()
		return nil, fmt.Errorf("%s: %w", door.Address, err)
	}
	return l, nil
}

func nonce() (n [wire.NonceLen]byte) {
	_, _ = rand.Read(n[:]) // never fails: it ends the process instead
	return n
}

// welcome takes links in until the engine ends.
func (d *doors) welcome(e *Engine, id *handshake.Identity, guests map[int]Opener) {
	ctx := e.ways.ctx
	context.AfterFunc(ctx, d.close)
	key := handshake.Key(id.Job, id.Secret)
	expected := func(rank int) bool {
		open, ok := guests[rank]
		return ok && open == nil
	}
	strangers := make(chan struct{}, maxStrangers)
	meet := func(l transport.Link) {
		ctx, cancel := context.WithTimeout(ctx, meetingTime)
		defer cancel()
		rank, err := joining.Meet(ctx, l, handshake.NewHost(key, e.world.Rank, id.Instance, nonce(), expected))
		if err != nil || !e.DirectUp(rank, l) {
			l.Close()
		}
	}
	for _, ln := range d.listeners {
		go func() {
			for {
				strangers <- struct{}{}
				l, err := ln.Accept()
				if err != nil {
					<-strangers
					if errors.Is(err, transport.ErrClosed) {
						return
					}
					select { // out of descriptors, most likely
					case <-ctx.Done():
						return
					case <-time.After(maxRedial):
					}
					continue
				}
				go func() {
					defer func() { <-strangers }()
					meet(l)
				}()
			}
		}()
	}
}

// joinDirect makes the direct links of a new engine and waits a moment for them; what is wrong with them is told to warn, which may be nil.
func (d *doors) joinDirect(ctx context.Context, e *Engine, id *handshake.Identity, guests map[int]Opener, warn func(string)) {
	d.welcome(e, id, guests)
	if len(guests) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, directPatience)
	defer cancel()
	if err := e.AwaitDirect(ctx); err != nil && warn != nil {
		warn(err.Error())
	}
}

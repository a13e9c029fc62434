package boot

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// openers returns the openers of this process's possible direct links, by peer rank. If two
// processes listen for each other the one with the lower rank is dialled, if its address is within
// reach.
func openers(id *handshake.Identity, layout *wire.Layout, within *reach) map[int]engine.Opener {
	key := handshake.Key(id.Job, id.Secret)
	me := int(layout.Rank)
	mine, _ := layout.ClusterOf(me)
	hosting := map[int]bool{} // clusters for which this process listens
	doors := map[int]wire.Door{}
	for _, d := range layout.Doors {
		c, _ := layout.ClusterOf(int(d.Rank))
		switch {
		case int(d.Rank) == me:
			hosting[int(d.Network)] = true
		case c != mine && int(d.Network) == mine:
			doors[int(d.Rank)] = d
		}
	}
	all := map[int]engine.Opener{}
	for rank := 0; len(hosting)+len(doors) > 0 && rank < layout.Ranks(); rank++ {
		c, _ := layout.ClusterOf(rank)
		at, has := doors[rank]
		switch {
		case c != mine && hosting[c] && (!has || me < rank):
			all[rank] = nil
		case has:
			all[rank] = func(ctx context.Context) (transport.Link, error) {
				if err := within.check(rank, at.Address); err != nil {
					return nil, err
				}
				return connect(ctx, at.Address, handshake.NewInitiator(key, me, at, nonce()))
			}
		}
	}
	return all
}

// waysOf returns the function that opens a direct link on demand, at an address that a forwarder
// names. reachable returns the addresses that may be dialled, which may take up to meetingTime; it
// is called once, if at all.
func waysOf(id *handshake.Identity, layout *wire.Layout, reachable func() *reach) engine.WayOpener {
	key := handshake.Key(id.Job, id.Secret)
	me := int(layout.Rank)
	within := sync.OnceValue(reachable)
	return func(ctx context.Context, w wire.Way) (transport.Link, error) {
		if err := within().check(int(w.Rank), w.Address); err != nil {
			return nil, err
		}
		at := wire.Door{Rank: w.Rank, Instance: w.Instance, Port: wire.Port{Address: w.Address}}
		return connect(ctx, w.Address, handshake.NewInitiator(key, me, at, nonce()))
	}
}

// connect opens a direct link to a process that listens at the address.
func connect(ctx context.Context, addr string, m *handshake.Meeting) (transport.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, meetingTime)
	defer cancel()
	l, err := dial.Once(ctx, addr)
	if err != nil {
		return nil, err
	}
	if _, err := dial.Meet(ctx, l, m); err != nil {
		l.Close()
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return l, nil
}

func nonce() (n [wire.NonceLen]byte) {
	_, _ = rand.Read(n[:]) // it never fails: it ends the process instead
	return n
}

// joinDirect makes the direct links of a new engine and waits a moment for them. It calls warn,
// which may be nil, with each problem.
func (ln *listener) joinDirect(ctx context.Context, e *engine.Engine, id *handshake.Identity,
	direct map[int]engine.Opener, warn func(string)) {
	ln.accept(e, id, direct)
	if len(direct) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, directPatience)
	defer cancel()
	if err := e.AwaitDirect(ctx); err != nil && warn != nil {
		warn(err.Error())
	}
}

// unopened returns a text with the other clusters for which addresses were given, although no rank
// of this cluster listens for them. It returns "" if there are none.
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
			return int(d.Network) == i && layout.Clusters[at].Name == job.Cluster
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

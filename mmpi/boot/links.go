package boot

import (
	"context"
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/dial"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// target is a forwarder to join, and as whom.
type target struct {
	addr string
	row  int // the links of one row are of use only together
	id   handshake.Identity
}

func addresses(targets []target) (list []string) {
	for _, t := range targets {
		list = append(list, t.addr)
	}
	return list
}

// targetsOf gives the links to forwarders that the process needs; paths is nil unless the job has
// several hops (hopRoutes).
func targetsOf(job jobenv.Job, id handshake.Identity) (targets []target, paths [][]int, err error) {
	n := len(job.Forwarders)
	switch {
	case n == 0:
		return nil, nil, errors.New("no forwarder is named")
	case len(job.Zippers) > 0:
		return hopRoutes(job, id)
	case n > engine.MaxRails:
		return nil, nil, fmt.Errorf("%d forwarders are named, at most %d can be used", n, engine.MaxRails)
	}
	for i, addr := range job.Forwarders {
		targets = append(targets, target{addr, i, id})
	}
	return targets, nil, nil
}

// joinFirst joins at all forwarders at once and returns when a first row of them has let us in: the
// other links may come later (engine.Config.Redial).
func joinFirst(ctx context.Context, d *dial.Dialer, targets []target) ([]transport.Link,
	func(context.Context, int) (transport.Link, error), wire.Layout, error) {
	n := len(targets)
	ctx, cancel := context.WithCancel(ctx)
	type answer struct {
		rail   int
		link   transport.Link
		layout wire.Layout
		err    error
	}
	first := make([]chan answer, n) // of the first attempt at each
	any := make(chan answer, n)
	waits := map[int]int{} // by row: links that are not there yet
	for i, t := range targets {
		waits[t.row]++
		first[i] = make(chan answer, 1)
		go func() {
			l, layout, err := d.Dial(ctx, t.addr, t.id)
			a := answer{i, l, layout, err}
			first[i] <- a
			any <- a
		}()
	}
	links, tried := make([]transport.Link, n), make([]bool, n) // tried: the first attempt has had its answer taken
	// discard ends all that is there or under way.
	discard := func() {
		cancel() // after success it must not be called: other links are still on their way
		for i := range first {
			if links[i] != nil {
				links[i].Close()
			} else {
				go func() {
					if a := <-first[i]; a.err == nil {
						a.link.Close()
					}
				}()
			}
		}
	}
	again := *d
	again.Notify = nil // the engine tells what it has lost
	redial := func(ctx context.Context, rail int) (transport.Link, error) {
		if !tried[rail] { // only one goroutine at a time works for a rail
			tried[rail] = true
			select {
			case a := <-first[rail]:
				return a.link, a.err
			case <-ctx.Done():
				go func() {
					if a := <-first[rail]; a.err == nil {
						a.link.Close()
					}
				}()
				return nil, ctx.Err()
			}
		}
		l, _, err := again.Dial(ctx, targets[rail].addr, targets[rail].id)
		return l, err
	}
	var all []error
	for len(waits) > 0 {
		a := <-any
		var refused *handshake.Refused
		if errors.As(a.err, &refused) && refused.Code != wire.RefuseTimeout && refused.Code != wire.RefuseShutdown ||
			ctx.Err() != nil {
			err := errors.Join(a.err, ctx.Err())
			discard()
			return nil, nil, wire.Layout{}, err
		}
		row := targets[a.rail].row
		if a.err != nil {
			all = append(all, a.err)
			delete(waits, row)
			continue
		}
		<-first[a.rail]
		links[a.rail], tried[a.rail] = a.link, true
		switch waits[row] {
		case 0: // another of its row has failed
		case 1:
			return links, redial, a.layout, nil
		default:
			waits[row]--
		}
	}
	discard()
	return nil, nil, wire.Layout{}, errors.Join(all...)
}

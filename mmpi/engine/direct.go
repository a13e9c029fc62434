package engine

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/transport"
)

// A direct link leads to one process of another cluster without a forwarder: one of the two is on a zipper node, or a zipper node's
// kernel passes it on. It is a rail that only this pair's
// frames take, and all of them while it is up. When it is lost they go through the forwarder, as what a lost rail carried does; the end that dialled it
// opens it again. That a pair can have one is known to both from the start, so both are ready for frames that overtake each other.

// Opener opens the link to a process that can be reached directly; nil: that process does so, and DirectUp is called.
type Opener func(ctx context.Context) (transport.Link, error)

// addDirect makes the rails of pairs that can have a direct link, all of them down.
func (e *Engine) addDirect(openers map[int]Opener) error {
	e.direct.changed = make(chan struct{}, 1)
	if len(openers) == 0 {
		return nil
	}
	e.slots++
	for rank := range e.size {
		open, ok := openers[rank]
		if !ok {
			continue
		}
		if e.sameCluster(rank) {
			return failure(ErrInternal, "direct link to rank %d of the own cluster", rank)
		}
		p := e.peer(rank)
		r := &rail{e: e, index: len(e.forwarders), peer: p}
		if open != nil {
			r.redial = func(ctx context.Context) error {
				l, err := open(ctx)
				if err == nil && !e.DirectUp(rank, l) {
					l.Close()
				}
				return err
			}
		}
		p.direct = r
		e.rails = append(e.rails, r)
	}
	return nil
}

// DirectUp takes a link to another process into use, in place of the one before; false: the engine does not want it any more.
func (e *Engine) DirectUp(rank int, l transport.Link) bool {
	e.lock()
	defer e.unlock()
	r := e.peers[rank].direct
	if e.err != nil || e.ways.finishing || e.stopping || r.leaving {
		return false
	}
	if r.up { // the other end knew sooner
		e.railDown(r, "opened again")
	}
	if r.in.buf == nil {
		r.in.buf = make([]byte, inputSize)
	}
	r.attach(l)
	r.up, r.bye, r.blocked = true, running, false
	r.fresh, r.heard, r.pinged = true, e.now(), 0
	e.resend(r.peer, nil)
	e.schedule(r.peer)
	e.wait.WakeAll()
	e.directNews(r, nil)
	return true
}

// carries reports whether frames for a peer go over this rail now: a direct link takes all of them.
func (r *rail) carries(p *peer) bool {
	if d := p.direct; d != nil && d.reaches(p.rank) {
		return r == d
	}
	return r.reaches(p.rank)
}

// fewDirect is how many direct links are read one by one.
const fewDirect = 2

// stepDirect reads and writes direct links once. Which of many have something to read is asked with one system call.
func (e *Engine) stepDirect() (n int) {
	direct := e.rails[len(e.forwarders):]
	if len(direct) <= fewDirect {
		for _, r := range direct {
			n += r.step()
		}
		return n
	}
	set := e.direct.set[:0]
	for _, r := range direct {
		fd := int32(-1) // is passed over
		if r.up {
			fd = int32(r.link.FD())
		}
		set = append(set, unix.PollFd{Fd: fd, Events: unix.POLLIN})
	}
	e.direct.set = set
	wait.Ppoll(set, 0, true)
	for i, r := range direct {
		if set[i].Revents != 0 || r.pending() {
			n += r.step()
		}
	}
	return n
}

// tracked reports whether segments over this rail are acknowledged, because the job goes on when it is lost.
func (r *rail) tracked() bool { return r.e.multi || r.peer != nil }

// directState is what direct links have in common; changed tells when pairs have become linked, or could not.
type directState struct {
	changed chan struct{}
	set     []unix.PollFd // scratch
}

func (e *Engine) directNews(r *rail, err error) {
	r.failed = err
	select {
	case e.direct.changed <- struct{}{}:
	default:
	}
}

// AwaitDirect waits until all pairs that can have a direct link have it or have failed to make it once; those that do not are in the error.
// It never waits longer than ctx lasts. What is late is taken into use whenever it comes.
func (e *Engine) AwaitDirect(ctx context.Context) error {
	for {
		missing, open := e.missingDirect()
		if !open {
			return missing
		}
		select {
		case <-ctx.Done():
			return missing
		case <-e.direct.changed:
		}
	}
}

// missingDirect says which pairs have no direct link; open: some may still get it.
func (e *Engine) missingDirect() (err error, open bool) {
	e.lock()
	defer e.unlock()
	var ranks []int
	why := "it has not called"
	for _, r := range e.rails[len(e.forwarders):] {
		if r.up {
			continue
		}
		ranks = append(ranks, r.peer.rank)
		switch {
		case r.failed != nil:
			why = r.failed.Error()
		case e.err == nil:
			open = true
		}
	}
	if len(ranks) == 0 {
		return nil, false
	}
	slices.Sort(ranks)
	more := ""
	if n := len(ranks) - 1; n > 0 {
		more = fmt.Sprintf(" (and with %d more)", n)
	}
	return fmt.Errorf("no direct link with rank %d%s: %s; messages go through the forwarder meanwhile", ranks[0], more, why), open
}

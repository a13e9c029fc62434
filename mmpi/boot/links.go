package boot

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

func addresses(targets []dial.Target) (list []string) {
	for _, t := range targets {
		list = append(list, t.Address)
	}
	return list
}

// targetsOf returns the forwarders that the process joins, whose number an engine limits. paths is
// nil unless the job has several hops (dial.Targets).
func targetsOf(job jobenv.Job, id handshake.Identity, via map[string]string) (targets []dial.Target, paths [][]int,
	err error) {
	if targets, paths, err = dial.Targets(job, id); err != nil {
		return nil, nil, err
	}
	for i := range targets {
		targets[i].Address = cmp.Or(via[targets[i].Address], targets[i].Address)
	}
	switch n := len(targets); {
	case n <= engine.MaxRails:
		return targets, paths, nil
	case paths == nil:
		return nil, nil, fmt.Errorf("%d forwarders are named, at most %d can be used", n, engine.MaxRails)
	default:
		return nil, nil, fmt.Errorf("cluster %s needs %d links to forwarders for %d rows of them, "+
			"at most %d can be used: name fewer zippers side by side",
			job.Cluster, n, targets[n-1].Row+1, engine.MaxRails)
	}
}

// attempt is the first attempt to join at a forwarder.
//
//	underWay ─a caller takes its answer→ taken
//	underWay ─it is no longer wanted→ dropped
type attempt struct {
	state  attemptState
	answer chan answer // receives one answer, at the end of the attempt
}

type attemptState uint8

const (
	underWay attemptState = iota // no caller has the answer yet
	taken                        // the caller with the answer owns the link
	dropped                      // the link is closed when it arrives
)

// attemptLegal[from] is the set of states that may follow.
var attemptLegal = [...]uint8{underWay: 1<<taken | 1<<dropped, taken: 0, dropped: 0}

func (a *attempt) to(s attemptState) {
	if attemptLegal[a.state]&(1<<s) == 0 {
		panic(fmt.Sprintf("boot: attempt to join goes from state %d to %d", a.state, s))
	}
	a.state = s
}

// take waits for the answer. If ctx ends before, the attempt is dropped.
func (a *attempt) take(ctx context.Context) answer {
	select {
	case got := <-a.answer:
		a.to(taken)
		return got
	case <-ctx.Done():
		a.drop()
		return answer{err: ctx.Err()}
	}
}

func (a *attempt) drop() {
	a.to(dropped)
	go func() {
		if got := <-a.answer; got.err == nil {
			got.link.Close()
		}
	}()
}

// answer is the result of an attempt.
type answer struct {
	link   transport.Link
	layout wire.Layout
	err    error
}

// admission is the result of joining at the forwarders.
type admission struct {
	links  []transport.Link // links by target; nil if not there yet
	layout wire.Layout

	targets []dial.Target
	dialer  dial.Dialer
	first   []attempt // first attempt of each target
	// cancel ends first attempts. After success some of them may still be under way.
	cancel context.CancelFunc
}

// joinFirst joins at all forwarders at once. It returns when the forwarders of one row have
// admitted this process; the other links may follow later (redial).
func joinFirst(ctx context.Context, d *dial.Dialer, targets []dial.Target) (*admission, error) {
	ctx, cancel := context.WithCancel(ctx)
	a := &admission{links: make([]transport.Link, len(targets)), targets: targets, dialer: *d,
		first: make([]attempt, len(targets)), cancel: cancel}
	a.dialer.Notify = nil // from then on the engine reports lost links
	if len(targets) == 1 || len(targets[0].ID.Zippers) > 0 {
		// the engine needs to know soon whether a forwarder can be reached
		a.dialer.Limit, a.dialer.Silence = redialLimit, rejoinSilence
	}
	ended := make(chan int, len(targets)) // targets whose attempt has an answer
	for i, t := range targets {
		a.first[i].answer = make(chan answer, 1)
		go func() {
			l, layout, err := d.Dial(ctx, t.Address, t.ID)
			a.first[i].answer <- answer{l, layout, err}
			ended <- i
		}()
	}
	if err := a.awaitRow(ctx, ended); err != nil {
		a.discard()
		return nil, err
	}
	return a, nil
}

// awaitRow takes answers until all links of one row are there.
func (a *admission) awaitRow(ctx context.Context, ended <-chan int) error {
	waits := map[int]int{} // missing links of each row; a row that has failed is removed
	for _, t := range a.targets {
		waits[t.Row]++
	}
	var failed []error
	for len(waits) > 0 {
		i := <-ended
		got := <-a.first[i].answer
		a.first[i].to(taken)
		a.links[i] = got.link
		row := a.targets[i].Row
		switch {
		case final(got.err) || ctx.Err() != nil:
			return errors.Join(got.err, ctx.Err())
		case got.err != nil:
			failed = append(failed, got.err)
			delete(waits, row)
		case waits[row] == 1:
			a.layout = got.layout
			return nil
		case waits[row] > 1:
			waits[row]--
		}
	}
	return errors.Join(failed...)
}

// final reports whether an error is a refusal that no retry, here or elsewhere, can change.
func final(err error) bool {
	var refused *handshake.Refused
	return errors.As(err, &refused) && refused.Final()
}

// discard closes all links and ends all attempts.
func (a *admission) discard() {
	a.cancel()
	for i := range a.first {
		if a.first[i].state == underWay {
			a.first[i].drop()
		}
		if l := a.links[i]; l != nil {
			l.Close()
		}
	}
}

// redial implements engine.Config.Redial: it returns the result of the first attempt, if that has
// not been taken, and otherwise makes a new attempt. Only one goroutine at a time may call it for a
// rail.
func (a *admission) redial(ctx context.Context, rail int, needs engine.Attempt) (transport.Link, error) {
	if f := &a.first[rail]; f.state == underWay {
		got := f.take(ctx)
		return got.link, got.err
	}
	id := a.targets[rail].ID
	id.Leaving, id.Lost = needs.Leaves, needs.Lost
	l, _, err := a.dialer.Dial(ctx, a.targets[rail].Address, id)
	return l, err
}

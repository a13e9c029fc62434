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

// targetsOf gives the forwarders that the process joins, of which an engine takes a limited number;
// paths is nil unless the job has several hops (dial.Targets).
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
//	underWay ─somebody takes its answer→ taken
//	underWay ─nobody wants it any more→ dropped
type attempt struct {
	state  attemptState
	answer chan answer // gets one, when it has ended
}

type attemptState uint8

const (
	underWay attemptState = iota // the answer is nobody's yet
	taken                        // who has taken the answer has the link
	dropped                      // the link is closed when it comes
)

// attemptLegal[from] is the set of states that may follow.
var attemptLegal = [...]uint8{underWay: 1<<taken | 1<<dropped, taken: 0, dropped: 0}

func (a *attempt) to(s attemptState) {
	if attemptLegal[a.state]&(1<<s) == 0 {
		panic(fmt.Sprintf("boot: attempt to join goes from state %d to %d", a.state, s))
	}
	a.state = s
}

// take waits for the answer, or for ctx's end: then the attempt is dropped.
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

// answer is how an attempt ended.
type answer struct {
	link   transport.Link
	layout wire.Layout
	err    error
}

// admission is what joining at the forwarders has come to.
type admission struct {
	links  []transport.Link // by target; nil: not there yet
	layout wire.Layout

	targets []dial.Target
	dialer  dial.Dialer
	first   []attempt          // by target
	cancel  context.CancelFunc // ends first attempts; after success others are still under way
}

// joinFirst joins at all forwarders at once and returns when a first row of them has let us in: the
// other links may come later (redial).
func joinFirst(ctx context.Context, d *dial.Dialer, targets []dial.Target) (*admission, error) {
	ctx, cancel := context.WithCancel(ctx)
	a := &admission{links: make([]transport.Link, len(targets)), targets: targets, dialer: *d,
		first: make([]attempt, len(targets)), cancel: cancel}
	a.dialer.Notify = nil // from then on the engine tells what it has lost
	switch {              // it has to know soon whether anybody is there
	case len(targets[0].ID.Zippers) > 0:
		a.dialer.Limit, a.dialer.Silence = redialLimit, anewSilence
	case len(targets) == 1:
		a.dialer.Limit, a.dialer.Silence = redialLimit, redialLimit
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
	waits := map[int]int{} // by row: links that are not there yet; a row that cannot come is taken out
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

// final tells a refusal that trying again, or elsewhere, does not change.
func final(err error) bool {
	var refused *handshake.Refused
	return errors.As(err, &refused) && refused.Final()
}

// discard ends all that is there or under way.
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

// redial is engine.Config.Redial: what has come of the first attempt, if nobody has asked yet, else
// a new one. Only one goroutine at a time may call it for a rail.
func (a *admission) redial(ctx context.Context, rail int, leaves bool) (transport.Link, error) {
	if f := &a.first[rail]; f.state == underWay {
		got := f.take(ctx)
		return got.link, got.err
	}
	id := a.targets[rail].ID
	id.Leaving = leaves
	l, _, err := a.dialer.Dial(ctx, a.targets[rail].Address, id)
	return l, err
}

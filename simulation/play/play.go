// Package play has the product's engines and forwarders send the messages of a pattern or a
// recorded job on a platform, in virtual time. It reports the time at which each message arrived,
// the resources that it waited for, and the counters of the forwarders. It predicts the same as
// contention/predict, which calculates from the same platform file and messages;
// docs/howto/predicting.md says when to use which.
//
// site.go creates the platform's adapters and hosts. run.go has the state of a run. cast.go creates
// forwarders and processes. message.go sends and receives. turn.go repeats recorded steps. fault.go
// injects faults. report.go sums up.
package play

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/predict"
	"github.com/leidenzipper/zipper/simulation/kernel"
	"github.com/leidenzipper/zipper/simulation/process"
)

// Options are the options of a run.
type Options struct {
	// Seed of all random decisions: the order of simultaneous events, and the victims of faults.
	Seed   uint64
	Faults []Fault // planned faults
	Rate   float64 // mean number of additional random faults per second
	// Say is called with each event of the run; nil discards them.
	Say func(at time.Duration, what string)
}

// Result is the result of a run.
type Result struct {
	Report     *predict.Report // times of the messages and use of the resources
	Forwarders []Forwarder     // counters of each forwarder, in the order of the zippers
	Started    time.Duration   // time until all ranks had joined
	Steps      uint64          // number of events that the kernel handled
	// Used is the processor time of all hosts together from the first message on, without
	// interrupts of links.
	Used   time.Duration
	Faults []string // descriptions of the faults that happened
}

// Forwarder has the counters of one forwarder.
type Forwarder struct {
	Name    string    // name of the zipper
	Traffic []Traffic // counters for each pair of clusters
	Busy    float64   // mean number of busy processors between the first message and the last
}

// Traffic has the counters of the messages from one cluster to another.
type Traffic struct {
	From, To          string // clusters of the senders and receivers
	Messages, Bytes   uint64 // number of messages and of their payload bytes
	Headers, Repeated uint64 // number of header bytes, and of frames that were sent again
}

// Run simulates the messages on platform p and returns their times. It returns an error if a
// message does not arrive.
func Run(p *platform.Platform, messages []platform.Message, o Options) (*Result, error) {
	if len(messages) == 0 {
		return nil, errors.New("no messages to play")
	}
	k := kernel.New(o.Seed)
	r := &run{Options: o, site: newSite(k, p), byRank: map[int]*proc{}, byHost: map[string]*proc{},
		left: len(messages)}
	r.world, r.onJoined = process.World{K: k, Dial: r.dial}, r.allIn
	if o.Say != nil {
		r.world.Say = func(format string, args ...any) { o.Say(k.Now()-r.begin, fmt.Sprintf(format, args...)) }
	}
	if err := r.cast(messages); err != nil {
		return nil, err
	}
	defer r.end()
	k.Run(func() bool {
		if r.err == nil && k.Now() > max(r.moved, r.begin)+standstill {
			r.err = fmt.Errorf("no progress for %v, and %d messages have not arrived", standstill, r.left)
		}
		return r.left == 0 || r.err != nil
	})
	if r.err == nil && r.left > 0 {
		r.err = fmt.Errorf("no event is left, and %d messages have not arrived", r.left)
	}
	if r.err != nil {
		return nil, fmt.Errorf("after %v of virtual time: %w", max(0, k.Now()-r.begin).Round(time.Microsecond), r.err)
	}
	return r.result(), nil
}

// end kills all processes of the run, which frees their coroutines.
func (r *run) end() {
	for _, p := range r.procs {
		p.p.Kill()
		for _, m := range p.members {
			if m != nil && m.Engine != nil {
				m.Engine.Discard()
			}
		}
	}
	for _, f := range r.forwarders {
		f.Proc.Kill()
	}
}

// dial opens a connection from process p, of a rank or a forwarder, to the forwarder's port with
// address addr.
func (r *run) dial(ctx context.Context, p *kernel.Process, addr string) (*kernel.End, error) {
	to, cluster := r.address(addr)
	e, err := p.Dial(ctx, addr, r.path(p.Host().Name, to, cluster))
	if err == nil {
		r.ends = append(r.ends, e)
	}
	return e, err
}

// allIn schedules the messages and the faults. It is called once all ranks have joined.
func (r *run) allIn() {
	r.begin = r.k.Now() + settle
	r.k.After(settle, func() {
		r.measure()
		r.injectLater()
		for _, p := range r.procs {
			p.work()
			p.play()
		}
		for i := range r.messages {
			r.launch(i)
		}
	})
}

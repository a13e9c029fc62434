// Package play has the product's engines and forwarders send the messages of a pattern or a
// recorded job on a platform, in virtual time. It tells when each message was there, what it waited
// for, and what the forwarders counted. It predicts what contention/predict does by arithmetic,
// from the same platform file and messages; docs/howto/predicting.md says when to use which.
//
// site.go makes the platform's adapters and hosts; run.go knows what there is; cast.go makes
// forwarders and processes; message.go has processes send and receive; turn.go has ranks do
// what was recorded of them; fault.go does harm; report.go sums up.
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

// Options of a run.
type Options struct {
	Seed   uint64  // of what is open: which of several events of one time is first, and what faults hit
	Faults []Fault // that happen to it
	Rate   float64 // of further ones, drawn: a second
	// Say is told what happens; nil: nobody.
	Say func(at time.Duration, what string)
}

// Result is what has come of it.
type Result struct {
	Report     *predict.Report
	Forwarders []Forwarder
	Started    time.Duration // how long the job took to gather
	Steps      uint64        // events
	Used       time.Duration // processor time of all hosts together, without that of links
	Faults     []string      // that happened
}

// Forwarder is what one has counted.
type Forwarder struct {
	Name    string
	Traffic []Traffic
	Busy    float64 // part of a processor, from the first message to the last
}

// Traffic is between two clusters.
type Traffic struct {
	From, To          string
	Messages, Bytes   uint64
	Headers, Repeated uint64
}

// Run plays the messages.
func Run(p *platform.Platform, messages []platform.Message, o Options) (*Result, error) {
	if len(messages) == 0 {
		return nil, errors.New("no messages to play")
	}
	k := kernel.New(o.Seed)
	r := &run{Options: o, site: newSite(k, p), byRank: map[int]*proc{}, byHost: map[string]*proc{},
		left: len(messages)}
	r.world, r.whenIn = process.World{K: k, Dial: r.dial}, r.allIn
	if o.Say != nil {
		r.world.Say = func(format string, args ...any) { o.Say(k.Now()-r.begin, fmt.Sprintf(format, args...)) }
	}
	if err := r.cast(messages); err != nil {
		return nil, err
	}
	defer r.end()
	k.Run(func() bool {
		if r.err == nil && k.Now() > max(r.moved, r.begin)+standstill {
			r.err = fmt.Errorf("nothing has moved for %v, and %d messages are not over", standstill, r.left)
		}
		return r.left == 0 || r.err != nil
	})
	if r.err == nil && r.left > 0 {
		r.err = fmt.Errorf("nothing is left to happen, and %d messages are not over", r.left)
	}
	if r.err != nil {
		return nil, fmt.Errorf("after %v of virtual time: %w", max(0, k.Now()-r.begin).Round(time.Microsecond), r.err)
	}
	return r.result(), nil
}

// end frees what coroutines hold.
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

// dial opens a connection to a forwarder, or between two.
func (r *run) dial(ctx context.Context, p *kernel.Process, addr string) (*kernel.End, error) {
	to, cluster := r.address(addr)
	e, err := p.Dial(ctx, addr, r.path(p.Host().Name, to, cluster))
	if err == nil {
		r.ends = append(r.ends, e)
	}
	return e, err
}

// allIn has the messages begin soon.
func (r *run) allIn() {
	r.begin = r.k.Now() + settle
	r.k.After(settle, func() {
		r.measure()
		r.harmLater()
		for _, p := range r.procs {
			p.work()
			p.play()
		}
		for i := range r.messages {
			r.launch(i)
		}
	})
}

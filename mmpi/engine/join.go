package engine

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"runtime"
	"time"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/launch/jobenv"
	joining "github.com/leidenzipper/zipper/rail"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/transport/verbs"
	"github.com/leidenzipper/zipper/wire"
)

// Local is what only native MPI knows of this process.
type Local struct {
	Rank, Size int // in the cluster's own MPI
	TagUB      int
	Library    string // "Open MPI 4.1.4"
	Host       string
	Guest      bool         // see Config
	Warn       func(string) // is told what the user should know though the job goes on; nil: nobody
	Unmaps     verbs.Unmaps // tells what the program unmaps, if registrations of its memory are to be kept
}

// Model names the data model: two processes of a job must agree, since data crosses as it lies in memory.
const Model = runtime.GOARCH + " little endian"

// Join makes this process part of the job and starts the engine. It blocks until all ranks of all clusters are in or the job's time-out ends.
// The engine is nil if the job has one cluster only: nothing spans. The world is valid then too.
func Join(ctx context.Context, job jobenv.Job, loc Local, native Native) (*Engine, World, error) {
	w := World{Clusters: make([]wire.Cluster, len(job.Layout)), TagUB: loc.TagUB}
	first, size := 0, -1
	for i, c := range job.Layout {
		w.Clusters[i] = wire.Cluster{Name: c.Name, Size: uint32(c.Size)}
		switch {
		case c.Name == job.Cluster:
			size = c.Size
		case size < 0:
			first += c.Size
		}
	}
	if size != loc.Size {
		return nil, w, failure(ErrArg, "cluster %s has %d ranks in its MPI, but %s says %s: start it with as many ranks as the layout says",
			job.Cluster, loc.Size, jobenv.VarLayout, jobenv.FormatLayout(job.Layout))
	}
	w.Rank = first + loc.Rank
	if len(job.Layout) == 1 {
		return nil, w, nil
	}
	tuning, err := collectives.ParseTuning(job.Collectives)
	if err != nil {
		return nil, w, failure(ErrArg, "%s: %v", jobenv.VarCollectives, err)
	}
	id := handshake.Identity{Job: job.ID, Secret: job.Secret, Cluster: job.Cluster, Rank: loc.Rank, Layout: w.Clusters, TagUB: loc.TagUB,
		Library: loc.Library, Model: Model, Host: loc.Host, Timeout: job.Timeout,
		Protocol: job.Protocol, Settings: jobenv.VarCollectives + "=" + tuning.String(),
		Rails: len(job.Forwarders), Instance: mathrand.Uint64()}
	var ways []int
	if len(job.Zippers) > 0 {
		if ways, err = hopWays(job, &id); err != nil {
			return nil, w, failure(ErrArg, "%s: %v", jobenv.VarForwarders, err)
		}
	}
	doors, err := openDoors(job)
	if err != nil {
		return nil, w, err
	}
	id.Doors = doors.ports
	dialer := &joining.Dialer{Verbs: verbs.Options{Unmaps: loc.Unmaps}}
	links, redial, layout, err := dial(ctx, dialer, job, id)
	if err != nil {
		doors.close()
		return nil, w, failure(ErrLink, "cluster %s rank %d cannot join job %q: %v", job.Cluster, loc.Rank, job.ID, err)
	}
	w.TagUB = int(layout.TagUB)
	poll := map[string]Poll{"busy": PollBusy, "event": PollEvent}[job.Poll]
	limits := Limits{Grace: time.Second}
	if job.Protocol == jobenv.Classic {
		limits.classic()
	}
	direct := openers(&id, &layout)
	inPlace := 0
	if loc.Guest { // else memory is Go's
		inPlace = job.InPlace
	}
	e, err := New(Config{World: w, PlaceFrom: inPlace, Warn: loc.Warn, Direct: direct, Native: native, Links: links, Redial: redial, Ways: ways, Poll: poll, Guest: loc.Guest, Collectives: tuning, Limits: limits})
	if err != nil {
		for _, l := range links {
			if l != nil {
				l.Close()
			}
		}
		doors.close()
		return nil, w, err
	}
	if s := unopened(&job, &layout); s != "" && loc.Rank == 0 && loc.Warn != nil {
		loc.Warn(s)
	}
	doors.joinDirect(ctx, e, &id, direct, loc.Warn)
	e.record(job, loc.Host)
	return e, w, nil
}

// dial joins at all of the job's forwarders at once and returns when the first has let us in: the other links may come later (Config.Redial).
func dial(ctx context.Context, d *joining.Dialer, job jobenv.Job, id handshake.Identity) ([]transport.Link, func(context.Context, int) (transport.Link, error), wire.Layout, error) {
	n := len(job.Forwarders)
	if n == 0 {
		return nil, nil, wire.Layout{}, fmt.Errorf("no forwarder is named in %s", jobenv.VarForwarders)
	}
	if n > MaxRails {
		return nil, nil, wire.Layout{}, fmt.Errorf("%s names %d forwarders, at most %d can be used", jobenv.VarForwarders, n, MaxRails)
	}
	if len(job.Zippers) > 0 {
		links, layout, err := dialHops(ctx, d, job, id)
		return links, nil, layout, err
	}
	type answer struct {
		rail   int
		link   transport.Link
		layout wire.Layout
		err    error
	}
	first := make([]chan answer, n) // of the first attempt at each
	any := make(chan answer, n)
	for i, addr := range job.Forwarders {
		first[i] = make(chan answer, 1)
		go func() {
			l, layout, err := d.Dial(ctx, addr, id)
			a := answer{i, l, layout, err}
			first[i] <- a
			any <- a
		}()
	}
	// discard closes links that come too late.
	discard := func() {
		for i := range first {
			go func() {
				if a := <-first[i]; a.err == nil {
					a.link.Close()
				}
			}()
		}
	}
	var all []error
	for range n {
		a := <-any
		var refused *handshake.Refused
		if errors.As(a.err, &refused) && refused.Code != wire.RefuseTimeout && refused.Code != wire.RefuseShutdown || ctx.Err() != nil {
			discard()
			return nil, nil, wire.Layout{}, errors.Join(a.err, ctx.Err())
		}
		if a.err != nil {
			all = append(all, a.err)
			continue
		}
		<-first[a.rail]
		links := make([]transport.Link, n)
		links[a.rail] = a.link
		tried := make([]bool, n)
		tried[a.rail] = true
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
			l, _, err := d.Dial(ctx, job.Forwarders[rail], id)
			return l, err
		}
		return links, redial, a.layout, nil
	}
	return nil, nil, wire.Layout{}, errors.Join(all...)
}

package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"runtime"
	"time"

	"github.com/leidenzipper/zipper/collectives"
	joining "github.com/leidenzipper/zipper/dial"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/jobenv"
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
	Hosts      []int32      // see World
	Guest      bool         // see Config
	Warn       func(string) // is told what the user should know though the job goes on; nil: nobody
	Unmaps     verbs.Unmaps // tells what the program unmaps, if registrations of its memory are to be kept
}

// Model names the data model: two processes of a job must agree, since data crosses as it lies in memory.
const Model = runtime.GOARCH + " little endian"

// Join makes this process part of the job and starts the engine. It blocks until all ranks of all clusters are in or the job's time-out ends.
// The engine is nil if the job has one cluster only: nothing spans. The world is valid then too.
func Join(ctx context.Context, job jobenv.Job, loc Local, native Native) (*Engine, World, error) {
	w := World{Clusters: make([]wire.Cluster, len(job.Layout)), TagUB: loc.TagUB, Hosts: loc.Hosts, Order: jobenv.VirtualRanks(job.Order, job.Layout)}
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
	settings := jobenv.VarCollectives + "=" + tuning.String()
	if w.Order != nil { // it may be long
		sum := sha256.Sum256([]byte(jobenv.FormatOrder(job.Order)))
		settings += " " + jobenv.VarOrder + "=#" + hex.EncodeToString(sum[:8])
	}
	id := handshake.Identity{Job: job.ID, Secret: job.Secret, Cluster: job.Cluster, Rank: loc.Rank, Layout: w.Clusters, TagUB: loc.TagUB,
		Library: loc.Library, Model: Model, Host: loc.Host, Timeout: job.Timeout,
		Protocol: job.Protocol, Settings: settings,
		Rails: len(job.Forwarders), Instance: mathrand.Uint64()}
	doors, err := openDoors(job)
	if err != nil {
		return nil, w, err
	}
	id.Doors = doors.ports
	targets, ways, err := targetsOf(job, id)
	if err != nil {
		doors.close()
		return nil, w, failure(ErrArg, "%s: %v", jobenv.VarForwarders, err)
	}
	dialer := &joining.Dialer{Verbs: verbs.Options{Unmaps: loc.Unmaps}}
	if loc.Rank == 0 {
		dialer.Notify = loc.Warn
	}
	if len(targets) == 1 && job.Protocol != jobenv.Classic { // several share the load, and one may be lost
		dialer.Inside = doors.inside
	}
	links, redial, layout, err := dial(ctx, dialer, targets)
	if err != nil {
		doors.close()
		return nil, w, failure(ErrLink, "cluster %s cannot join job %q: %v", job.Cluster, job.ID, err)
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
	e, err := New(Config{World: w, PlaceFrom: inPlace, Warn: loc.Warn, Direct: direct, Native: native, Links: links, Addresses: addresses(targets), Redial: redial, Ways: ways, Poll: poll, Guest: loc.Guest, Collectives: tuning, Limits: limits})
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

// targetsOf gives the links to forwarders that the process needs; ways is nil unless the job has several hops (hopWays).
func targetsOf(job jobenv.Job, id handshake.Identity) (targets []target, ways [][]int, err error) {
	n := len(job.Forwarders)
	switch {
	case n == 0:
		return nil, nil, errors.New("no forwarder is named")
	case len(job.Zippers) > 0:
		return hopWays(job, id)
	case n > MaxRails:
		return nil, nil, fmt.Errorf("%d forwarders are named, at most %d can be used", n, MaxRails)
	}
	for i, addr := range job.Forwarders {
		targets = append(targets, target{addr, i, id})
	}
	return targets, nil, nil
}

// dial joins at all forwarders at once and returns when a first row of them has let us in: the other links may come later (Config.Redial).
func dial(ctx context.Context, d *joining.Dialer, targets []target) ([]transport.Link, func(context.Context, int) (transport.Link, error), wire.Layout, error) {
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
	again.Notify = nil // the engine tells what it has lost (news.go)
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
		if errors.As(a.err, &refused) && refused.Code != wire.RefuseTimeout && refused.Code != wire.RefuseShutdown || ctx.Err() != nil {
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

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/launch/jobenv"
	joining "github.com/leidenzipper/zipper/rail"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// Local is what only native MPI knows of this process.
type Local struct {
	Rank, Size int // in the cluster's own MPI
	TagUB      int
	Library    string // "Open MPI 4.1.4"
	Host       string
	Guest      bool // see Config
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
		Library: loc.Library, Model: Model, Host: loc.Host, Timeout: job.Timeout}
	link, layout, err := dial(ctx, job, id)
	if err != nil {
		return nil, w, failure(ErrLink, "cluster %s rank %d cannot join job %q: %v", job.Cluster, loc.Rank, job.ID, err)
	}
	w.TagUB = int(layout.TagUB)
	poll := map[string]Poll{"busy": PollBusy, "event": PollEvent}[job.Poll]
	e, err := New(Config{World: w, Native: native, Links: []transport.Link{link}, Poll: poll, Guest: loc.Guest, Collectives: tuning, Limits: Limits{Grace: time.Second}})
	if err != nil {
		link.Close()
		return nil, w, err
	}
	e.record(job, loc.Host)
	return e, w, nil
}

// dial joins at the first of the job's forwarders that can be reached.
func dial(ctx context.Context, job jobenv.Job, id handshake.Identity) (transport.Link, wire.Layout, error) {
	var all []error
	for _, addr := range job.Forwarders {
		d := joining.Dialer{}
		l, layout, err := d.Dial(ctx, addr, id)
		if err == nil {
			return l, layout, nil
		}
		var refused *handshake.Refused
		if errors.As(err, &refused) || ctx.Err() != nil {
			return nil, wire.Layout{}, err
		}
		all = append(all, err)
	}
	if len(all) == 0 {
		return nil, wire.Layout{}, fmt.Errorf("no forwarder is named in %s", jobenv.VarForwarders)
	}
	return nil, wire.Layout{}, errors.Join(all...)
}

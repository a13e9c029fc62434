package doctor

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// join joins a job at all its forwarders, as the only rank of a cluster, and leaves it.
func join(ctx context.Context, environ []string, begin time.Time) Answer {
	fail := func(err error) Answer {
		return Answer{Kind: Other, Took: time.Since(begin), Detail: err.Error()}
	}
	job, err := jobenv.From(func(name string) string {
		for _, kv := range environ {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ""
	})
	if err != nil {
		return fail(err)
	}
	id := handshake.Identity{Job: job.ID, Secret: job.Secret, Ticket: job.Ticket, Cluster: job.Cluster, TagUB: 1,
		Library: "zipper doctor",
		Model:   "zipper doctor", TimeoutMS: job.Timeout.Milliseconds(), Instance: instance()}
	id.Host, _ = os.Hostname()
	for _, c := range job.Layout {
		id.Layout = append(id.Layout, wire.Cluster{Name: c.Name, Size: uint32(c.Size)})
	}
	level, err := jobenv.ParseLevel(job.Level, job.Protocol, job.Networks)
	if err == nil {
		err = id.SetLevel(level, random())
	}
	if err != nil {
		return fail(err)
	}
	targets, _, err := dial.Targets(job, id)
	if err != nil {
		return fail(err)
	}
	links, errs := make([]transport.Link, len(targets)), make([]error, len(targets))
	channels := make([]*seal.Channel, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			d := dial.Dialer{Sealed: func(_ transport.Link, c *seal.Channel) { channels[i] = c }}
			links[i], _, errs[i] = d.Dial(ctx, t.Address, t.ID)
		})
	}
	wg.Wait()
	for i, l := range links {
		if l != nil {
			leave(l, channels[i])
		}
	}
	for _, err := range errs {
		if err != nil {
			return fail(err)
		}
	}
	return Answer{Kind: Reached, Took: time.Since(begin)}
}

// leave sends Bye, so that the forwarder counts no lost rank, and closes the link.
func leave(l transport.Link, c *seal.Channel) {
	bye := wire.AppendFrame(nil, wire.Control(wire.TypeBye), nil)
	if c != nil {
		h := wire.Control(wire.TypeBye).Sealed()
		bye, _ = c.Seal(nil, h.Append(nil), nil) // fails after 2^48 frames
	}
	_, _ = l.TryWrite(bye) // an empty link takes a frame of this size
	l.Close()
}

func instance() uint64 {
	b := random()
	return binary.LittleEndian.Uint64(b[:])
}

func random() (b [seal.PublicLen]byte) {
	_, _ = rand.Read(b[:]) // never fails
	return b
}

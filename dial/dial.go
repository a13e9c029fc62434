// Package dial opens a rank's way to a forwarder: it dials the forwarder's address, runs the join exchange and
// returns the link ready for frames between ranks.
package dial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/transport/shm"
	"github.com/leidenzipper/zipper/transport/tcp"
	"github.com/leidenzipper/zipper/transport/verbs"
	"github.com/leidenzipper/zipper/wire"
)

// Bounds of the pause between attempts to reach a forwarder.
const (
	firstPause = 20 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// refusal is how long the forwarder's word may take that the others have not come in time.
const refusal = 10 * time.Second

// Dialer opens rails. The zero value works. Safe for concurrent use.
type Dialer struct {
	// Transport, if not nil, makes the links; else the address decides (see Dial).
	Transport transport.Dialer
	// Verbs are for links to verbs addresses.
	Verbs verbs.Options
	// Notify, if not nil, is told what Dial waits for: once, on a goroutine of its own, if the forwarder is not reached after Patience, and what the forwarder says
	// that is missing.
	Notify func(what string)
	// Inside, if not nil, gives the IP address and port where this process takes connections that the forwarder's kernel passes on; here is this
	// end's address on the way to the forwarder. It is asked by forwarders that have this done only; empty: nowhere.
	Inside func(here netip.Addr) string
	// Patience is how long it may take to reach the forwarder before Notify is told; 0: 2 s.
	Patience time.Duration
	// Silence is how long nothing may come from a forwarder that has taken the connection; 0: one minute, as long as a forwarder waits for a process that
	// is stopped, or 10 s more than others are waited for, if that is less. It pings those that wait every few seconds.
	Silence time.Duration
}

// Dial connects to a forwarder at "host:port" (TCP), "unix:/path" (shared memory, same host) or "verbs:host:port"
// (InfiniBand or RoCE; see verbs.ParseAddress), joins the job
// and waits until all ranks of all clusters are in. A forwarder that is not there yet is tried again until
// id.TimeoutMS, so that the pieces of a job can start in any order; after that the forwarder bounds the waiting.
//
// The error is a *handshake.Refused when one end refused, ctx's error when that ended, else it names the address.
// After success the link carries frames between ranks and belongs to the caller.
func (d *Dialer) Dial(ctx context.Context, addr string, id handshake.Identity) (transport.Link, wire.Layout, error) {
	if err := id.Validate(); err != nil {
		return nil, wire.Layout{}, err
	}
	limit := time.Duration(id.TimeoutMS) * time.Millisecond
	td, target := d.Transport, addr
	if td == nil {
		td, target = d.pick(addr)
	}
	var last atomic.Pointer[error] // of the attempts to connect
	patience := time.AfterFunc(cmp.Or(d.Patience, 2*time.Second), func() {
		why := errors.New("no answer so far")
		if err := last.Load(); err != nil {
			why = *err
		}
		if d.Notify != nil {
			d.Notify(fmt.Sprintf("forwarder %s is not reached yet: %v; trying for %v in all", addr, why, limit))
		}
	})
	l, err := d.connect(ctx, td, target, limit, func(err error) { last.Store(&err) })
	patience.Stop() // from here on the forwarder says what is missing
	if err != nil {
		return nil, wire.Layout{}, fmt.Errorf("forwarder %s: %w", addr, err)
	}
	layout, err := Join(ctx, l, id, min(cmp.Or(d.Silence, time.Minute), limit+refusal), func(missing string) {
		if d.Notify != nil {
			d.Notify(fmt.Sprintf("forwarder %s: %s", addr, missing))
		}
	}, func() string {
		home, ok := l.(transport.Homed)
		if !ok || d.Inside == nil {
			return ""
		}
		here, _ := home.Home()
		return d.Inside(here)
	})
	if err != nil {
		l.Close()
		return nil, wire.Layout{}, fmt.Errorf("forwarder %s: %w", addr, err)
	}
	return l, layout, nil
}

// Open connects to a forwarder's address and tries until ctx ends; joining is the caller's. It is how forwarders reach each other.
func Open(ctx context.Context, addr string) (transport.Link, error) {
	d := &Dialer{}
	td, target := d.pick(addr)
	limit := time.Minute
	if end, ok := ctx.Deadline(); ok {
		limit = time.Until(end)
	}
	return d.connect(ctx, td, target, limit, func(error) {})
}

// pick chooses the transport by the form of the address.
func (d *Dialer) pick(addr string) (transport.Dialer, string) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return shm.Dialer{}, path
	}
	if strings.HasPrefix(addr, verbs.Scheme) {
		return verbs.Dialer{Options: d.Verbs}, addr
	}
	return tcp.Dialer{}, addr
}

func (d *Dialer) connect(ctx context.Context, td transport.Dialer, addr string, limit time.Duration, failed func(error)) (transport.Link, error) {
	tctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	pause := firstPause
	for {
		l, err := td.Dial(tctx, addr)
		if err == nil {
			return l, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var dns *net.DNSError
		var bad *net.AddrError
		var final interface{ Permanent() bool } // of transports: trying again does not help
		if errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &bad) || errors.As(err, &final) && final.Permanent() {
			return nil, err
		}
		if tctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tctx.Done():
			return nil, fmt.Errorf("not reachable within %v (is it running, is the address right?): %w", limit, err)
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		}
	}
}

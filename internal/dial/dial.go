// Package dial reaches a forwarder or a peer and runs the handshake with it. It is the one place
// that knows which transport an address is for. Dialer joins a rank to a job at a forwarder; Open
// and Once only connect; Listen is the other end; Meet runs the exchange of a direct link that is
// there.
//
// All functions block until they are through or their context ends, and are safe for concurrent
// use. Errors name the address. A *handshake.Refused is one end's word that it will not do; an
// error with a method Permanent that is true says that trying again does not help.
package dial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Dialer joins at forwarders. The zero value works. Safe for concurrent use.
type Dialer struct {
	// Transport, if not nil, makes the links; else the address decides (see Dial).
	Transport transport.Dialer
	// Unmaps is for links to verbs addresses: it tells what the program unmaps, and lets a link
	// keep registrations of the program's memory. nil: none is kept.
	Unmaps Unmaps
	// Notify, if not nil, is told what Dial waits for: once, on a goroutine of its own, if the
	// forwarder is not reached after Patience, and what the forwarder says that is missing.
	Notify func(what string)
	// Inside, if not nil, gives the IP address and port where this process takes connections that
	// the forwarder's kernel passes on; here is this end's address on the way to the forwarder.
	// Only forwarders that have this done ask; empty: nowhere.
	Inside func(here netip.Addr) string
	// Sealed, if not nil, is given what seals the frames between the two ends of a link of a sealed
	// job, before Dial returns it.
	Sealed func(transport.Link, *seal.Channel)
	// Limit is how long connecting may take in all, and how long the forwarder may pause then
	// before its first word and within a frame; 0: the identity's time-out, and Silence.
	Limit time.Duration
	// Patience is how long it may take to reach the forwarder before Notify is told; 0: 2 s.
	Patience time.Duration
	// Silence is how long nothing may come from a forwarder that has taken the connection; 0: one
	// minute, or 10 s more than others are waited for, if that is less. It pings those that wait
	// every few seconds.
	Silence time.Duration
}

// Dial connects to a forwarder's address (package addr), joins the job and waits until all ranks of
// all clusters are in. A forwarder that is not there yet is tried again until id.TimeoutMS, so that
// the pieces of a job can start in any order; after that the forwarder bounds the waiting.
//
// The error is a *handshake.Refused when one end refused, ctx's error when that ended, else it
// names the address. After success the link carries frames between ranks and belongs to the caller.
func (d *Dialer) Dial(ctx context.Context, at string, id handshake.Identity) (transport.Link, wire.Layout, error) {
	if err := id.Validate(); err != nil {
		return nil, wire.Layout{}, err
	}
	limit := time.Duration(id.TimeoutMS) * time.Millisecond
	end := time.Now().Add(limit)
	for {
		l, layout, err := d.once(ctx, at, id)
		left := time.Until(end) - fullPause
		if !scarce(err) || left < time.Millisecond {
			return l, layout, err
		}
		id.TimeoutMS = left.Milliseconds()
		select { // the process is at its limit of descriptors: others may be closed before long
		case <-ctx.Done():
			return nil, wire.Layout{}, ctx.Err()
		case <-time.After(fullPause):
		}
	}
}

// scarce reports that a call has failed for want of descriptors.
func scarce(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }

// full reports whether this process is at its limit of descriptors: then the files in which a name
// might be found cannot be opened, which the resolver takes for a name that there is not.
func full() bool {
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return scarce(err)
}

// once is one attempt of Dial.
func (d *Dialer) once(ctx context.Context, at string, id handshake.Identity) (transport.Link, wire.Layout, error) {
	limit := time.Duration(id.TimeoutMS) * time.Millisecond
	most := limit
	if d.Limit > 0 {
		most = min(most, d.Limit)
	}
	td, target := d.Transport, at
	if td == nil {
		td, target = pick(at, d.Unmaps)
	}
	var last atomic.Pointer[error] // of the attempts to connect
	timer := time.AfterFunc(cmp.Or(d.Patience, tellAfter), func() {
		why := errors.New("no answer so far")
		if err := last.Load(); err != nil {
			why = *err
		}
		if d.Notify != nil {
			d.Notify(fmt.Sprintf("forwarder %s is not reached yet: %v; trying for %v in all", at, why, limit))
		}
	})
	l, err := connect(ctx, td, target, most, func(err error) { last.Store(&err) })
	timer.Stop() // from here on the forwarder says what is missing
	if err != nil {
		return nil, wire.Layout{}, fmt.Errorf("forwarder %s: %w", at, err)
	}
	quiet := silence{between: min(cmp.Or(d.Silence, maxSilence), limit+refusal)}
	quiet.within = min(quiet.between, cmp.Or(d.Limit, maxSilence))
	joined, err := join(ctx, l, id, quiet, func(missing string) {
		if d.Notify != nil {
			d.Notify(fmt.Sprintf("forwarder %s: %s", at, missing))
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
		return nil, wire.Layout{}, fmt.Errorf("forwarder %s: %w", at, err)
	}
	if joined.Seal != nil && d.Sealed != nil {
		d.Sealed(l, joined.Seal)
	}
	return l, joined.Layout, nil
}

// late is the end of the time to connect in.
type late struct {
	limit       time.Duration
	last, ended error // of the last attempt; of the caller's context: nil if that goes on
}

func (e *late) Error() string {
	return fmt.Sprintf("not reachable within %v (is it running, is the address right?): %v",
		e.limit.Round(10*time.Millisecond), e.last)
}

func (e *late) Unwrap() []error {
	if e.ended == nil {
		return []error{e.last}
	}
	return []error{e.last, e.ended}
}

func connect(ctx context.Context, td transport.Dialer, addr string, limit time.Duration,
	failed func(error)) (transport.Link, error) {
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	tctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	pause := firstPause
	var last error // the last one before the time was over, if there is one
	for {
		l, err := td.Dial(tctx, addr)
		if err == nil {
			return l, nil
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		var dns *net.DNSError
		var bad *net.AddrError
		var final interface{ Permanent() bool } // of transports: trying again does not help
		if errors.As(err, &dns) && dns.IsNotFound && !full() || errors.As(err, &bad) || errors.As(err, &final) &&
			final.Permanent() {
			return nil, err
		}
		if tctx.Err() == nil {
			failed(err)
		}
		if tctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-tctx.Done(): // which ends with ctx, too
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			return nil, &late{limit, last, ctx.Err()}
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		}
	}
}

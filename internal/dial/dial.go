// Package dial connects to a forwarder or a peer and runs the handshake with it. It is the only
// package that chooses a transport by the form of an address. Dialer joins a rank to a job at a
// forwarder. Open and Once only connect. Listen is the other end. Meet runs the handshake of a
// direct link that is already connected.
//
// All functions block until they have finished or their context ends, and are safe for concurrent
// use. Errors name the address. A *handshake.Refused means that one end refuses. An error with a
// method Permanent that returns true means that a retry does not help.
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

// Dialer joins jobs at forwarders. The zero value works. It is safe for concurrent use.
type Dialer struct {
	// Transport, if not nil, makes the links. Otherwise the address decides (see Dial).
	Transport transport.Dialer
	// Unmaps reports the memory that the program unmaps, which lets links to verbs addresses keep
	// registrations of the program's memory. With nil no registration is kept.
	Unmaps Unmaps
	// Notify, if not nil, is called with reasons for waiting: once, on a goroutine of its own, if
	// the forwarder is not reached after Patience, and, on the goroutine of Dial, with each list of
	// missing ranks from the forwarder.
	Notify func(what string)
	// Inside, if not nil, returns the IP address and port at which this process accepts connections
	// that the forwarder's kernel passes on, or "" if it accepts none. here is the address of this
	// end of the link to the forwarder. Only forwarders with this feature ask for it.
	Inside func(here netip.Addr) string
	// Sealed, if not nil, is called before Dial returns a link of a sealed job, with the channel
	// that encrypts the frames between the two ends of the link.
	Sealed func(transport.Link, *seal.Channel)
	// Limit is the time limit of connecting, and of each pause of the forwarder before its first
	// frame and within a frame. With 0 they are the identity's time-out, and Silence.
	Limit time.Duration
	// Patience is the time to reach the forwarder after which Notify is called; 0 means 2 s.
	Patience time.Duration
	// Silence is the time limit without a frame from a forwarder that has accepted the connection;
	// 0 means one minute. If 10 s more than the identity's time-out is less, that is the limit. The
	// forwarder pings waiting ranks every few seconds.
	Silence time.Duration
}

// Dial connects to a forwarder's address (package addr), joins the job and waits until all ranks of
// all clusters have joined. If the forwarder cannot be reached Dial retries until id.TimeoutMS, so
// that the pieces of a job can start in any order. After that the forwarder bounds the waiting
// time.
//
// The error is a *handshake.Refused if one end refused, the error of ctx if that ended, and
// otherwise names the address. After success the link carries frames between ranks and belongs to
// the caller.
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
		select { // the process is at its limit of descriptors; others may soon be closed
		case <-ctx.Done():
			return nil, wire.Layout{}, ctx.Err()
		case <-time.After(fullPause):
		}
	}
}

// scarce reports whether a call has failed for lack of descriptors.
func scarce(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }

// full reports whether this process is at its limit of descriptors. Then files such as /etc/hosts
// cannot be opened, and the resolver reports that a name does not exist.
func full() bool {
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return scarce(err)
}

// once makes one attempt of Dial.
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
	var last atomic.Pointer[error] // error of the last attempt to connect
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
	timer.Stop() // from here on the forwarder reports missing ranks
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

// late is the error of the time limit of connecting.
type late struct {
	limit time.Duration
	// last is the error of the last attempt. ended is that of the caller's context, or nil if it
	// has not ended.
	last, ended error
}

func (e *late) Error() string {
	advice := "(is it running, is the address right?)"
	if n, ok := errors.AsType[net.Error](e.last); ok && n.Timeout() { // nothing has answered, not even to refuse
		advice = "(is its node running, is the address right, does a firewall drop packets, or is the node's table of connections full?)"
	}
	return fmt.Sprintf("not reachable within %v %s: %v", e.limit.Round(10*time.Millisecond), advice, e.last)
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
	var last error // error of the last attempt within the time limit, if there was one
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
		var final interface{ Permanent() bool } // implemented by transports whose error a retry does not help
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
		case <-tctx.Done(): // it also ends with ctx
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			return nil, &late{limit, last, ctx.Err()}
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		}
	}
}

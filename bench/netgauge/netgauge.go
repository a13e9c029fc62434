// Package netgauge measures networks the way Netgauge does (Hoefler, Mehlan, Lumsdaine, Rehm:
// "Netgauge: A Network Performance Measurement Framework", HPCC 2007): communication patterns on
// one side, modules that move bytes on the other, and every pair that fits can be run. A pattern
// states its needs, a module its offers. A new pattern or module is one file and an entry in
// lists.go.
//
// The original's modules for Myrinet/GM, ARMCI, SCI, EDP and ESP and verbs RD are missing because
// their hardware or libraries no longer exist.
package netgauge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Offer is a set of properties of a module.
type Offer uint

// Properties.
const (
	Reliable    Offer = 1 << iota // every message arrives, once, in order
	Nonblocking                   // the endpoint is a Starter
	Many                          // more than two processes
)

var offerNames = []struct {
	o    Offer
	name string
}{{Reliable, "reliable delivery"}, {Nonblocking, "nonblocking operations"}, {Many, "more than two processes"}}

func (o Offer) String() string {
	var s []string
	for _, n := range offerNames {
		if o&n.o != 0 {
			s = append(s, n.name)
		}
	}
	if s == nil {
		return "nothing special"
	}
	return strings.Join(s, ", ")
}

// ErrLost means that no message came in time. Only modules that are not Reliable return it.
var ErrLost = errors.New("netgauge: no message in time")

// Endpoint is one process's end of a module. It is not safe for concurrent use.
type Endpoint interface {
	Rank() int
	Size() int
	// Send sends b to a process. The caller may use b again on return.
	Send(to int, b []byte) error
	// Recv waits for exactly len(b) bytes, a whole message, from a process. A module that is not
	// Reliable returns ErrLost after a tenth of a second and may deliver a message twice.
	Recv(from int, b []byte) error
	Close() error
}

// Starter is an Endpoint with nonblocking operations.
type Starter interface {
	Isend(to int, b []byte) (Pending, error)
	Irecv(from int, b []byte) (Pending, error)
}

// Pending is a nonblocking operation; b belongs to it until Wait returns.
type Pending interface{ Wait() error }

// Place lists the processes and names this one.
type Place struct {
	Rank  int
	Addrs []string // addresses of all processes, in the module's form
}

// Module moves bytes.
type Module struct {
	Name   string
	About  string
	Offers Offer
	// MinMessage and MaxMessage bound messages in bytes; a MaxMessage of 0 means no limit. An
	// Endpoint with a method MaxMessage may have a lower one. The MinMessage of a module that is
	// not Reliable has room for the number that a pattern writes into each message.
	MinMessage, MaxMessage int
	// Unusable returns why this user cannot use the module on this machine, or nil.
	Unusable func() error
	// Open connects all processes. It blocks until they are there or ctx ends. It is nil for
	// modules that work inside an MPI job only.
	Open func(ctx context.Context, p Place) (Endpoint, error)
}

// Options describe a run.
type Options struct {
	// Sizes are message sizes in bytes, ascending; nil means 1 B … 1 MiB by doubling.
	Sizes []int
	// Reps is the number of measurements per size, at least 2.
	Reps int
	Seed uint64
}

// Defaults returns options for a quick run.
func Defaults() Options { return Options{Reps: 50, Seed: 1} }

// Pattern is a kind of communication.
type Pattern struct {
	Name  string
	About string
	Needs Offer
	Run   func(ep Endpoint, o Options, clock Clock) (*Report, error)
}

// Report is the result of a pattern; it is complete on rank 0.
type Report struct {
	Pattern string `json:"pattern"`
	Module  string `json:"module"`
	Ranks   int    `json:"ranks"`
	// Columns are the names of the columns, with units.
	Columns []string    `json:"columns"`
	Rows    [][]float64 `json:"rows"`
	// Values has fitted parameters, in seconds and bytes.
	Values map[string]float64 `json:"values,omitempty"`
	// Lost is the number of messages that had to be sent again.
	Lost  int      `json:"lost,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// Fits returns why a pattern cannot run over a module, or nil.
func Fits(p Pattern, m Module) error {
	if missing := p.Needs &^ m.Offers; missing != 0 {
		return fmt.Errorf("pattern %s needs %v, which module %s does not offer", p.Name, missing, m.Name)
	}
	if m.Unusable != nil {
		if err := m.Unusable(); err != nil {
			return fmt.Errorf("module %s: %w", m.Name, err)
		}
	}
	return nil
}

// FindIn is Find in given lists.
func FindIn(patterns []Pattern, modules []Module, pattern, module string) (p Pattern, m Module, err error) {
	i := slices.IndexFunc(patterns, func(p Pattern) bool { return p.Name == pattern })
	if i < 0 {
		return p, m, fmt.Errorf("netgauge: no pattern %q; there are %s", pattern,
			names(patterns, func(p Pattern) string { return p.Name }))
	}
	j := slices.IndexFunc(modules, func(m Module) bool { return m.Name == module })
	if j < 0 {
		return p, m, fmt.Errorf("netgauge: no module %q; there are %s", module,
			names(modules, func(m Module) string { return m.Name }))
	}
	return patterns[i], modules[j], nil
}

func names[T any](list []T, name func(T) string) string {
	var s []string
	for _, x := range list {
		s = append(s, name(x))
	}
	return strings.Join(s, ", ")
}

// Run runs a pattern over a module; every process calls it.
func Run(ctx context.Context, p Pattern, m Module, at Place, o Options) (*Report, error) {
	if err := Fits(p, m); err != nil {
		return nil, err
	}
	if n := len(at.Addrs); n < 2 || at.Rank < 0 || at.Rank >= n || n > 2 && m.Offers&Many == 0 {
		return nil, fmt.Errorf("netgauge: rank %d of %d processes over module %s is not possible", at.Rank, n, m.Name)
	}
	if o.Reps < 2 {
		return nil, fmt.Errorf("netgauge: %d repetitions; at least 2 are needed", o.Reps)
	}
	if o.Sizes == nil {
		for n := 1; n <= largestSize; n *= 2 {
			o.Sizes = append(o.Sizes, n)
		}
	}
	o.Sizes = clamp(o.Sizes, m.MinMessage, m.MaxMessage)
	if len(o.Sizes) == 0 {
		return nil, fmt.Errorf("netgauge: module %s moves messages of %d to %d bytes; none of the sizes is", m.Name,
			m.MinMessage, m.MaxMessage)
	}
	if m.Open == nil {
		return nil, fmt.Errorf("netgauge: module %s needs an MPI job", m.Name)
	}
	ep, err := m.Open(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", m.Name, err)
	}
	defer ep.Close()
	if narrow, ok := ep.(interface{ MaxMessage() int }); ok {
		if o.Sizes = clamp(o.Sizes, m.MinMessage, narrow.MaxMessage()); len(o.Sizes) == 0 {
			return nil, fmt.Errorf("netgauge: module %s moves messages of at most %d bytes here; none of the sizes is",
				m.Name, narrow.MaxMessage())
		}
	}
	r, err := p.Run(ep, o, NewClock())
	if r != nil {
		r.Pattern, r.Module, r.Ranks = p.Name, m.Name, len(at.Addrs)
	}
	return r, err
}

// clamp raises sizes to the least of a module and drops those above the most.
func clamp(sizes []int, lo, hi int) []int {
	var out []int
	for _, n := range sizes {
		if n = max(n, lo); (hi == 0 || n <= hi) && (len(out) == 0 || n > out[len(out)-1]) {
			out = append(out, n)
		}
	}
	return out
}

// Clock reads time in seconds; the cost of a reading is known.
type Clock struct {
	start    time.Time
	Overhead float64 // seconds that one reading takes, which Since subtracts
}

// NewClock measures the clock's own cost: the smallest of many means of ten consecutive readings.
func NewClock() Clock {
	c := Clock{start: time.Now()}
	least := 1.0
	for range 1000 {
		a := c.Now()
		for range 9 {
			c.Now()
		}
		least = min(least, (c.Now()-a)/10)
	}
	c.Overhead = least
	return c
}

// Now returns the seconds since the clock was made.
func (c Clock) Now() float64 { return time.Since(c.start).Seconds() }

// Since returns the time from a reading until now without the clock's own cost.
func (c Clock) Since(t float64) float64 { return max(0, c.Now()-t-c.Overhead) }

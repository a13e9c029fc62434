package forwarder

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/clock"
	"github.com/leidenzipper/zipper/forwarder/loglimit"
	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Config has the settings of a forwarder. Zero values mean the default in parentheses.
type Config struct {
	// Listeners accept links from ranks and other forwarders. At least one is required. Serve
	// closes them.
	Listeners []transport.Listener
	// Log receives the log (no logging). Of lines with the same message it gets ten at once, and
	// then one a second.
	Log *zap.Logger

	// Loops is the number of event-loop threads (half the number of CPUs, 1 to 4). GOMAXPROCS
	// should be at least Loops + 1.
	Loops int
	// ReadBuffer is the number of bytes that a loop reads at once, into its one buffer (260 KiB).
	ReadBuffer int
	// Protocol is "" or Classic. Only jobs with the same protocol are served. Classic has one loop.
	Protocol string
	// Poll is the way in which a loop waits: PollAdaptive (default), PollEvent or PollBusy.
	Poll string

	// Nice is the nice value of the loops' threads, -20 (before others) to 19, if the system
	// permits it (0: that of the process).
	Nice int

	// NAT lets the kernel forward connections between ranks; nil: all frames are relayed here.
	NAT nat.Kernel
	// NATOff is the reason, for users, why NAT is nil; Status reports it.
	NATOff string
	Dial   Dial // Dial opens links to other forwarders, for jobs of several hops (these are refused).

	// Trunk is the number of connections that carry bulk to another forwarder that this one has
	// dialled, up to trunk.Most. If there are several, one more carries all other frames (one for
	// all frames within a site; over a long path as many as fill it).
	Trunk int

	Level  wire.Level // Level is the weakest security level that jobs may have.
	Secret string     // Secret of the operator: only jobs whose ranks know it are served; empty: all.
	// Ticket, if not nil, returns the user of a Join's ticket, or an error if the ticket is not
	// valid; only jobs whose ranks have valid tickets are served. It may be called on any
	// goroutine.
	Ticket func(j *wire.Join) (user string, err error)
	// HostKey is the key that identifies the forwarder to ranks and other forwarders (none).
	HostKey ed25519.PrivateKey
	Jobs    []string // Jobs has the only job ids that are served; empty: all.

	JoinTimeout time.Duration // the longest time from a link's start to the Join of its rank (10 s)
	// the time after the last join at which ranks are told what is missing (5 s)
	Patience     time.Duration
	PingInterval time.Duration // the time without input after which the other end of a link is pinged (2 s)
	// the time without input after which a pinged link is closed as dead (60 s, or the patience of
	// the link's job if that is longer)
	PeerTimeout time.Duration
	// the time after which a link to an unreachable host is dead (6 s)
	Unreachable time.Duration
	// the time that a link may take to close after Bye, Refuse or Abort (5 s)
	Linger time.Duration

	// Bounds of resources that strangers use; see also package strangers. An address is an IPv4
	// address or an IPv6 network of 64 bits.

	// the maximum time-out; longer ones of Joins are shortened (1 h)
	MaxTimeout       time.Duration
	MaxRanks         int // the maximum number of ranks of a job (65536)
	MaxGathering     int // the maximum number of jobs that wait for ranks (1024)
	MaxGatheringFrom int // the maximum number of jobs that wait for ranks and were opened from one address (64)
	// the maximum number of links that have not joined (8192, at most half the descriptors)
	MaxUnjoined int
	// the maximum number of links from one address that have not joined (4096, at most a quarter of
	// the descriptors)
	MaxUnjoinedFrom int
	MaxJobs         int // the maximum number of jobs, gathering or running (0: no bound)
	// the maximum number of jobs of one user, if tickets name users (0: no bound)
	MaxJobsOf int
	// the maximum number of links from one address, of any kind (half the descriptors)
	MaxLinksFrom int

	// FlowLimit is the number of bytes of payload from one rank that may be queued for another
	// before the sender's link is ended (64 MiB). ControlLimit is the number of bytes of headers
	// and control frames, and under Classic of waiting CTS frames (64 MiB).
	FlowLimit, ControlLimit int

	// Memory is the number of bytes that the forwarder may hold: bytes that wait for destinations
	// that do not accept them, frames that have arrived in part, and Joins. Default: a quarter of
	// the machine's memory. JobMemory is the number of bytes for one job (16 MiB, or 256 KiB for
	// each of its links if that is more). At its limit the links that hold most are not read: see
	// package budget.
	Memory, JobMemory int64

	// JobEnd, if not nil, is called when a job that has run has ended and all its links are gone.
	// It must not block.
	JobEnd func(Summary)

	// Meters receive the waiting times of frames and the durations of jobs.
	Meters Meters
	File   string // the name of the file with this configuration, which Status reports

	// The fields below have other values than the defaults in tests only.

	pipeFrom, pipeSize int         // the values of PipeFrom and PipeSize in relay.Config, in bytes
	clock              clock.Clock // the source of the time
	// runs functions that may block; default: a goroutine for each
	spawn func(fn func())
	loops loop.System // the system calls that the event loops use
	files int         // the maximum number of ranks that may have a link here in one job
	// whether an illegal transition panics; otherwise it ends its job or exchange
	strict bool
}

// Meters receives the measurements of a forwarder; nil fields are not used. Its observers must be
// safe for concurrent use, and quick: some are called for each frame that is queued.
type Meters struct {
	// the time that each queued frame has waited, in seconds, and the bytes queued for its
	// destination when it was queued, including the frame; both are nil or none
	Waited, Length relay.Observer
	// the seconds from each job's first join to its start, and from its start to its end
	Gather, Ran relay.Observer
}

// Classic is the protocol of the original middleware, for comparison.
const Classic = "classic"

// Values of Config.Poll.
const (
	PollAdaptive = loop.Adaptive
	PollEvent    = loop.Event
	PollBusy     = loop.Busy
)

// withDefaults returns the configuration with the defaults of its zero values, or an error if a
// value is out of range.
func (c Config) withDefaults() (Config, error) {
	if len(c.Listeners) == 0 {
		return c, errors.New("forwarder: no listener")
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	c.Log = loglimit.Limit(c.Log)
	if c.clock == nil {
		c.clock = clock.System{}
	}
	if c.Loops == 0 {
		c.Loops = loop.DefaultLoops()
	}
	if c.Protocol == Classic {
		c.Loops = 1
	}
	if c.Poll == "" {
		c.Poll = PollAdaptive
	}
	if c.Memory == 0 {
		c.Memory = budget.Machine() / budget.Share
	}
	for _, d := range []struct {
		v   *int
		def int
	}{
		{&c.ReadBuffer, relay.ReadBuffer}, {&c.FlowLimit, relay.FlowLimit}, {&c.ControlLimit, relay.ControlLimit},
		{&c.MaxRanks, MaxRanks}, {&c.MaxGathering, MaxGathering}, {&c.MaxGatheringFrom, MaxGatheringFrom},
		{&c.MaxUnjoined, min(MaxUnjoined, budget.Descriptors()/2)}, {&c.MaxUnjoinedFrom, min(MaxUnjoinedFrom, budget.Descriptors()/4)},
		{&c.MaxLinksFrom, budget.Descriptors() / 2},
		{&c.pipeFrom, relay.PipeFrom}, {&c.pipeSize, relay.PipeSize}, {&c.files, max(1, budget.Descriptors()-otherFiles)},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&c.JoinTimeout, JoinTimeout}, {&c.MaxTimeout, MaxTimeout}, {&c.Patience, Patience}, {&c.Linger, relay.Linger},
		{&c.PingInterval, relay.PingInterval}, {&c.PeerTimeout, relay.PeerTimeout}, {&c.Unreachable, relay.Unreachable},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
		if *d.v < 0 {
			return c, fmt.Errorf("forwarder: negative time-out %v", *d.v)
		}
	}
	switch {
	case c.Loops < 0 || c.ReadBuffer < minReadBuffer || c.FlowLimit < 0 || c.ControlLimit < 0:
		return c, fmt.Errorf("forwarder: %d loops, read buffer of %d bytes, limits %d and %d: out of range",
			c.Loops, c.ReadBuffer, c.FlowLimit, c.ControlLimit)
	case c.MaxRanks < 1 || c.MaxGathering < 1 || c.MaxGatheringFrom < 1 || c.MaxUnjoined < 1 ||
		c.MaxUnjoinedFrom < 1 || c.MaxLinksFrom < 1:
		return c, errors.New("forwarder: a limit for links that have not joined is below 1")
	case c.MaxJobs < 0 || c.MaxJobsOf < 0:
		return c, errors.New("forwarder: a negative number of jobs")
	case c.Trunk < 0 || c.Trunk > trunk.Most:
		return c, fmt.Errorf("forwarder: %d connections of a trunk: want 1 to %d, or 0 to have it decided", c.Trunk,
			trunk.Most)
	case c.Memory < 0 || c.JobMemory < 0:
		return c, fmt.Errorf("forwarder: %d bytes of memory, %d for a job: out of range", c.Memory, c.JobMemory)
	case c.Nice < -20 || c.Nice > 19:
		return c, fmt.Errorf("forwarder: nice value %d: want -20 to 19", c.Nice)
	case c.Protocol != "" && c.Protocol != Classic:
		return c, fmt.Errorf("forwarder: protocol %q: want %s, or nothing for the usual one", c.Protocol, Classic)
	case c.Poll != PollEvent && c.Poll != PollAdaptive && c.Poll != PollBusy:
		return c, fmt.Errorf("forwarder: poll %q: want event, adaptive or busy", c.Poll)
	case c.PeerTimeout <= c.PingInterval:
		return c, fmt.Errorf("forwarder: peer time-out %v must be longer than the ping interval %v",
			c.PeerTimeout, c.PingInterval)
	}
	return c, nil
}

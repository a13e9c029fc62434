package forwarder

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/clock"
	"github.com/leidenzipper/zipper/forwarder/loglimit"
	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Config says how a forwarder works. Zero values mean the default in parentheses.
type Config struct {
	Listeners []transport.Listener // where links come in, at least one; Serve closes them
	Log       *zap.Logger          // (no logging); of each message ten lines at once, then one a second

	// Loops is how many event-loop threads there are (half the number of CPUs, 1 to 4). Run with
	// GOMAXPROCS at least Loops + 1.
	Loops      int
	ReadBuffer int    // bytes a loop reads at once; one buffer per loop, not per link (260 KiB)
	Protocol   string // "" or Classic: only jobs with the same protocol are served; Classic has one loop
	Poll       string // how a loop waits: PollAdaptive (default), PollEvent or PollBusy

	// Nice is the nice value of the loops' threads, -20 (before others) to 19, if the system lets
	// them have it (0: that of the process).
	Nice int

	NAT  NAT  // passes connections between ranks on in the kernel where it can; nil: all frames are relayed here
	Dial Dial // opens links to other forwarders, for jobs of several hops (these are refused)

	// Trunk is how many connections carry bulk to another forwarder that this one has dialled, up
	// to trunk.Most; one more carries all else (one for all within a site; over a long path as many
	// as fill it).
	Trunk int

	Level  wire.Level // the weakest that jobs may have
	Secret string     // if not empty, only jobs with this secret are served
	// Ticket, if not nil, names the user of a Join, or says what is wrong with its ticket; only
	// jobs whose ranks bring good ones are served. Any goroutine.
	Ticket  func(j *wire.Join) (user string, err error)
	HostKey ed25519.PrivateKey // by which ranks and other forwarders know this one (none)
	Jobs    []string           // if not empty, only these job ids are served

	JoinTimeout  time.Duration // from a link's start to its Join (10 s)
	Patience     time.Duration // how long after the last join ranks are told what is missing (5 s)
	PingInterval time.Duration // a link from which nothing came for this long is pinged (2 s)
	PeerTimeout  time.Duration // a link from which nothing came for this long, though pinged, is dead (60 s)
	Unreachable  time.Duration // a link whose other host the network has not reached for this long is dead (6 s)
	Linger       time.Duration // how long a link may take to close after Bye, Refuse or Abort (5 s)

	// What is bounded because strangers decide it; see also package strangers. An address is an
	// IPv4 address or an IPv6 network of 64 bits.
	MaxTimeout       time.Duration // a Join with a longer time-out waits this long (1 h)
	MaxRanks         int           // of a job (65536)
	MaxGathering     int           // jobs that gather at once (1024)
	MaxGatheringFrom int           // of these opened from one address (64)
	MaxUnjoined      int           // links that have not joined (8192, at most half the descriptors)
	MaxUnjoinedFrom  int           // of these from one address (4096, at most a quarter of the descriptors)
	MaxJobs          int           // jobs, gathering or running (0: no bound)
	MaxJobsOf        int           // of these of one user, where tickets name users (0: no bound)
	MaxLinksFrom     int           // links from one address, whatever they do (half the descriptors)

	// FlowLimit is how many bytes of payload from one rank may be queued for another before its
	// link is ended (64 MiB); ControlLimit the same for headers and control frames, and under
	// Classic for CTS frames that wait for their turn (64 MiB).
	FlowLimit, ControlLimit int

	// Memory is how many bytes the forwarder keeps: of what waits for destinations that do not take
	// it, of frames that have come in part, and of Joins. Default: a quarter of the machine's
	// memory. JobMemory is how many for one job (16 MiB, or 256 KiB for each of its links if that
	// is more). At its limit links that have most waiting are not read: see package budget.
	Memory, JobMemory int64

	// JobEnd, if not nil, is called when a job has ended and all its links are gone. It must not
	// block.
	JobEnd func(Summary)

	// Meters are told what is measured.
	Meters Meters
	File   string // where this configuration is from, for Status

	// Others in tests.
	pipeFrom, pipeSize int // see package relay
	clock              clock.Clock
	spawn              func(fn func()) // runs what may block; a goroutine of its own
	loops              loop.System     // what loops wait by
	files              int             // links that it may have open, at most
	strict             bool            // an illegal transition panics; otherwise it ends its job or exchange
}

// Meters take what is measured while a forwarder works; nil ones are not wanted. Safe for
// concurrent use, and quick: some are called for each frame that is queued.
type Meters struct {
	Waited, Length relay.Observer // of each queued frame: its wait in seconds; the queue's bytes then. Both or none
	Gather, Ran    relay.Observer // of each job: seconds from its first join to its last; until its end
}

// Classic is the protocol of the original middleware, for comparison.
const Classic = "classic"

// Values of Config.Poll.
const (
	PollAdaptive = loop.Adaptive
	PollEvent    = loop.Event
	PollBusy     = loop.Busy
)

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
		c.Loops = DefaultLoops()
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
		return c, errors.New("forwarder: a bound for strangers is below 1")
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

// DefaultLoops is the number of event loops when Config does not say: one for two CPUs, since loops
// that spin keep a CPU from others; 1 to 4.
func DefaultLoops() int { return max(1, min(runtime.NumCPU()/2, maxLoops)) }

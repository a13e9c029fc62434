package engine

import (
	"context"
	"math"
	"time"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// World is who takes part in the job.
type World = world.World

// Config is what an engine starts with.
type Config struct {
	World  World
	Native Native
	// Links are joined links to forwarders, 1 to MaxRails; nil: not there yet. At least one is there.
	Links []transport.Link
	// Addresses name the forwarders of Links to the user. May be nil.
	Addresses []string
	// Redial opens the link of a place in Links again after it was lost, or for the first time; it tries until ctx ends. It is called only if
	// there are several. nil: never again.
	Redial func(ctx context.Context, rail int) (transport.Link, error)

	// Ways, in a job of several hops, are for each cluster the places in Links of those that lead there, one for each row of forwarders (for one's own
	// cluster: any). Then Redial is not called for a link that was there and is lost. nil: every link leads to all.
	Ways [][]int

	// Direct has an entry for every process to which a link without a forwarder can be made; the other process has one for this.
	Direct map[int]Opener

	// Poll is what Progress does when told to block: sleep on the links (adaptive, event) or not (busy).
	Poll Poll
	// Guest: this Go runtime serves the engine alone, in a program that is not Go's. Then sleeping threads keep their P; GOMAXPROCS has to be 3 at
	// least: one for the background thread, one for a sleeper, one for others.
	Guest bool
	// PlaceFrom is from how many bytes on messages of the program (KindP2P) are sent from its memory and received into it, over links that can; it must not
	// be Go's. 0: never.
	PlaceFrom int
	// Warn is told what the user should know though the job goes on, with the engine locked; nil: nobody.
	Warn func(string)
	// Recorder is told of the traffic; nil: nobody. It belongs to the engine.
	Recorder Recorder
	// Quiet leaves out the background thread; somebody must call Progress often. For tests.
	Quiet bool

	Limits Limits // zero values: the defaults
	// Collectives says which algorithm is used when; equal in all processes.
	Collectives collectives.Tuning
}

// Poll is a way to wait.
type Poll int

// Ways to wait.
const (
	PollAdaptive Poll = iota
	PollBusy
	PollEvent
)

// Limits are sizes in bytes and times. Those marked * must be equal in all processes.
type Limits struct {
	Eager       int           // longest message sent without asking; -1: none
	EagerWindow int           // * eager payload a process may have unconsumed at another at first
	DataWindow  int           // * rendezvous payload a process may have on its way to another
	EagerPool   int           // unconsumed eager payload a process grants to all others together, beyond first windows
	Segment     int           // payload of a Data frame
	Orphans     int           // envelopes kept per peer for communicators not known here yet
	Ping        time.Duration // silence after which a link is pinged
	Silence     time.Duration // time without an answer after which a link is lost
	LastWay     time.Duration // the same for the only link left, as long as the network reaches its other host
	NoRail      time.Duration // how long a job of several rails goes on when none is left, or none to some rank
	Grace       time.Duration // how long the cluster's own launcher has to end this process when a rank of the cluster ends the job: it knows the exit status; zero: none
}

// The most that flows may grant; see wire.MaxWindow for the bound on one flow.
const (
	receiverPool = 64 << 20 // bytes of eager payload per receiver
	maxEager     = 256 << 10
	maxData      = 4 << 20
)

// withDefaults fills in zero fields. Windows shrink as the world grows: they are what a receiver must be able to take from all at once.
func (l Limits) withDefaults(size int) Limits {
	share := receiverPool / max(1, size)
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&l.Eager, 64<<10)
	set(&l.EagerWindow, min(max(share/2, 16<<10), maxEager))
	set(&l.DataWindow, min(max(share, 256<<10), maxData))
	set(&l.EagerPool, receiverPool/2)
	set(&l.Segment, wire.SegmentSize)
	set(&l.Orphans, 1<<16)
	if l.Ping == 0 {
		l.Ping = 2 * time.Second
	}
	if l.Silence == 0 {
		l.Silence = 6 * time.Second
	}
	if l.LastWay == 0 {
		l.LastWay = time.Minute
	}
	if l.NoRail == 0 {
		l.NoRail = 10 * time.Second
	}
	l.Eager = min(l.Eager, wire.MaxPayload)
	l.Segment = min(l.Segment, wire.MaxPayload, l.DataWindow/2)
	return l
}

// Contexts made by no process.
const (
	WorldContext   uint64 = 0xFFFFFFFF00000000 // MPI_COMM_WORLD
	controlContext uint64 = math.MaxUint64     // the engine's own
)

package forwarder

import (
	"time"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/strangers"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Defaults of Config that are about jobs; those about bytes are in package relay, those about how
// loops wait in package loop.
const (
	// JoinTimeout is from a link's start to its Join, 10 s. Longer: whoever connects and says
	// nothing keeps a descriptor; shorter: a rank on a slow network is refused.
	JoinTimeout = 10 * time.Second

	// Patience is how long after the last join ranks are told what is missing, 5 s: longer than an
	// ordinary start takes.
	Patience = 5 * time.Second

	// maxTick is how often, at least, a loop looks at the clock for its connections, 1 s.
	maxTick = time.Second

	// ticksIn is how often it does so in the shortest time-out. More: time-outs are kept more
	// exactly; fewer: idle loops wake less.
	ticksIn = 4

	// acceptAgain: a listener that cannot take links in is tried again so much later, 100 ms.
	acceptAgain = 100 * time.Millisecond

	// keepSummaries is how many ended jobs Status remembers.
	keepSummaries = 32

	// maxClusters is how many clusters of a job Status tells one by one, 16: a page that people
	// read.
	maxClusters = 16

	// admitRoom is the room in which a job's Layouts are made, to begin with, 4 KiB: that of most
	// jobs, with a Proof and a Count.
	admitRoom = 4 << 10

	// minReadBuffer is the smallest Config.ReadBuffer, 4 KiB.
	minReadBuffer = 4 << 10

	// maxLoops is the most event loops that DefaultLoops gives; more do not pay before the network
	// is the limit.
	maxLoops = 4
)

// Defaults of Config that bound strangers.
const (
	// MaxTimeout is how long a job may gather, 1 h: batch systems start halves minutes apart.
	MaxTimeout = time.Hour

	// MaxRanks of a job. The format has room for sixteen times as many; a job's tables take memory
	// for each.
	MaxRanks = 1 << 16

	// MaxGathering jobs at once, and MaxGatheringFrom one address, which may be a centre's. More:
	// status and its page grow; fewer: users of a busy centre wait for each other.
	MaxGathering     = 1024
	MaxGatheringFrom = 64

	// MaxUnjoined links that have not joined, and MaxUnjoinedFrom one address. Each may keep a
	// buffer of wire.MaxJoin. Fewer: ranks of a large job that come all at once close each other.
	MaxUnjoined     = 8192
	MaxUnjoinedFrom = 4096

	// otherFiles is how many files a forwarder has open beside its links, at most: 40 connections
	// of the status address (package monitor), and those of its loops, listeners and logs.
	otherFiles = 80
)

// tick is how often the loops look at the clock.
func (c *Config) tick() time.Duration {
	return min(maxTick, c.PingInterval/ticksIn, c.Linger/ticksIn, c.JoinTimeout/ticksIn)
}

// timeout is how long a rank waits for the others, here.
func (c *Config) timeout(j *wire.Join) time.Duration {
	if job.Leaves(j) { // others that are in the same position are there soon
		return job.ComesBack
	}
	return min(time.Duration(j.TimeoutMS)*time.Millisecond, c.MaxTimeout)
}

// terms is the part that is about who may join.
func (c *Config) terms(keys *seal.Forwarder) *handshake.Terms {
	return &handshake.Terms{Secret: c.Secret, NAT: c.NAT != nil, HostKey: c.HostKey, Keys: keys, Ticket: c.Ticket,
		Strict: c.strict}
}

// strangers is the part of the configuration that bounds them.
func (c *Config) strangers() strangers.Limits {
	return strangers.Limits{Unjoined: c.MaxUnjoined, UnjoinedFrom: c.MaxUnjoinedFrom, LinksFrom: c.MaxLinksFrom,
		Gathering: c.MaxGathering, GatheringFrom: c.MaxGatheringFrom}
}

// jobMemory is what a job with so many links may keep.
func (c *Config) jobMemory(links int) int64 {
	if c.JobMemory > 0 {
		return c.JobMemory
	}
	return min(c.Memory, max(budget.JobLeast, int64(links)*budget.LinkShare))
}

// joiningMemory is how many bytes all links that have not joined may keep together.
func (c *Config) joiningMemory() int64 { return min(budget.JoiningMost, c.Memory/budget.JoiningShare) }

// relay is the part of the configuration that is about bytes.
func (c *Config) relay(memory *budget.Budget) relay.Config {
	return relay.Config{Memory: memory,
		Joining:    budget.New(c.joiningMemory()),
		ReadBuffer: c.ReadBuffer, FlowLimit: c.FlowLimit, ControlLimit: c.ControlLimit,
		PipeFrom: c.pipeFrom, PipeSize: c.pipeSize,
		Waited: c.Meters.Waited, Length: c.Meters.Length,
		PingInterval: c.PingInterval, PeerTimeout: c.PeerTimeout, Unreachable: c.Unreachable, Linger: c.Linger,
		Log: c.Log}
}

package forwarder

import (
	"syscall"
	"time"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/strangers"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/seal"
	"github.com/leidenzipper/zipper/wire"
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

	// largeAnswer is how long a forwarder may take to answer a Ping of the largest size over a new
	// link, 5 s: longer than a loss and its repetition take, shorter than a user's patience.
	largeAnswer = 5 * time.Second

	// noticeAfterRefusal: they are told so long after one was refused, 1 s, since more of them may
	// follow.
	noticeAfterRefusal = time.Second

	// maxTick is how often, at least, a loop looks at the clock for its connections, 1 s.
	maxTick = time.Second

	// ticksIn is how often it does so in the shortest time-out. More: time-outs are kept more
	// exactly; fewer: idle loops wake less.
	ticksIn = 4

	// acceptAgain: a listener that cannot take links in is tried again so much later, 100 ms.
	acceptAgain = 100 * time.Millisecond

	// maxGaps is how many links that a job lacks are named at once, 4: more have the same cause, or
	// are for later; maxGapText how many bytes that may take, 1 KiB, which has room for them as a
	// rule.
	maxGaps    = 4
	maxGapText = 1 << 10

	// maxGapNotices is how often another forwarder is heard on the links that it lacks, for a job,
	// 256: some times for each link of the largest trees. What is passed on is bounded by it.
	maxGapNotices = 256

	// comesBack is how long a rank is waited for whose link was closed, 3 s: a process that has
	// ended is not there any more, one that lives is back at once. Longer: a dead rank is reported
	// later; shorter: on a busy host one that lives is given up.
	comesBack = 3 * time.Second

	// maxBad is how many damaged frames may come from a rank within badTime, 100 in 10 s: those of
	// a bad line. Of a rank that sends more the job fails.
	maxBad  = 100
	badTime = 10 * time.Second

	// keepSummaries is how many ended jobs Status remembers.
	keepSummaries = 32

	// maxDirections and maxClusters are how many of a job Status tells one by one, 256 and 16: a
	// page that people read. A job of 256 clusters has 65536 directions.
	maxDirections = 256
	maxClusters   = 16

	// limitedFrom: a job is said to be limited by links that were full for more than this part of
	// the time, 5 %.
	limitedFrom = 0.05

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

	// joinsLeast is what the Joins of a job may take, 1 MiB, and joinShare for each of its ranks, 8
	// KiB: an honest one has a few hundred bytes, with a hundred forwarders' names and addresses a
	// few thousand.
	joinsLeast = 1 << 20
	joinShare  = 8 << 10

	// otherFiles is how many files a forwarder has open beside its links, at most: 40 connections
	// of the status address (package monitor), and those of its loops, listeners and logs.
	otherFiles = 80

	// fewDescriptors is how many there are taken to be where the system does not say.
	fewDescriptors = 1024
)

// For whom the kernel opens ways. Each connection takes memory at both ends, 64 KiB and what the
// kernel keeps, and is looked at by both.
const (
	// maxPairs is for how many pairs of ranks of different clusters, in a job; of more, none.
	maxPairs = 4096

	// maxPeers is how many ranks of other clusters a rank may have, for the same.
	maxPeers = 256

	// lowestPort is the lowest port that ways lead to: those below are for a system's services.
	lowestPort = 1024
)

// tick is how often the loops look at the clock.
func (c *Config) tick() time.Duration {
	return min(maxTick, c.PingInterval/ticksIn, c.Linger/ticksIn, c.JoinTimeout/ticksIn)
}

// timeout is how long a rank waits for the others, here.
func (c *Config) timeout(j *wire.Join) time.Duration {
	if leaves(j) { // others that are in the same position are there soon
		return comesBack
	}
	return min(time.Duration(j.TimeoutMS)*time.Millisecond, c.MaxTimeout)
}

// leaves reports whether a rank joins only to take its leave.
func leaves(j *wire.Join) bool { return j.TimeoutMS == 0 }

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

// descriptors is how many this process may have open.
func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fewDescriptors
	}
	return int(max(8, min(l.Cur, 1<<30)))
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

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

// Defaults of Config for jobs, and other limits. Package relay has those for bytes, package loop
// those of waiting.
const (
	// JoinTimeout is the maximum time from a link's start to its Join, 10 s. With a longer one,
	// silent clients occupy descriptors; with a shorter one, ranks on slow networks are refused.
	JoinTimeout = 10 * time.Second

	// Patience is the time after the last join at which ranks are told what is missing, 5 s: longer
	// than an ordinary start takes.
	Patience = 5 * time.Second

	// acceptAgain is the pause before a listener that cannot accept links is retried, 100 ms.
	acceptAgain = 100 * time.Millisecond

	// admitRoom is the initial size of the buffer for a job's Layouts, 4 KiB: enough for most jobs,
	// with a Proof and a Count.
	admitRoom = 4 << 10

	// minReadBuffer is the smallest Config.ReadBuffer, 4 KiB.
	minReadBuffer = 4 << 10
)

// Defaults of Config that bound strangers.
const (
	// MaxTimeout is the maximum time for which a job may gather, 1 h: batch systems start halves
	// minutes apart.
	MaxTimeout = time.Hour

	// MaxRanks is the maximum number of ranks of a job. The format has room for sixteen times as
	// many; a job's tables take memory for each.
	MaxRanks = 1 << 16

	// MaxGathering is the maximum number of jobs that gather, and MaxGatheringFrom that from one
	// address, which may be a whole centre's. With larger numbers the status and its page grow;
	// with smaller ones users of a busy centre wait for each other.
	MaxGathering     = 1024
	MaxGatheringFrom = 64

	// MaxUnjoined is the maximum number of links that have not joined, and MaxUnjoinedFrom that
	// from one address. Each link may hold a buffer of wire.MaxJoin. With smaller numbers, ranks of
	// a large job that arrive together displace each other.
	MaxUnjoined     = 8192
	MaxUnjoinedFrom = 4096

	// otherFiles is the number of descriptors that are left for open files other than links: 40
	// connections of the status address (package monitor), and those of loops, listeners and logs.
	otherFiles = 80
)

// timeout returns the time for which a rank that has sent a Join may wait here for the other ranks
// of its job.
func (c *Config) timeout(j *wire.Join) time.Duration {
	if job.Leaves(j) { // other ranks in the same position arrive soon
		return job.ComesBack
	}
	return min(time.Duration(j.TimeoutMS)*time.Millisecond, c.MaxTimeout)
}

// terms returns the part of the configuration that decides which Joins are accepted, for package
// handshake. present reports whether a job with an id and a key is here.
func (c *Config) terms(keys *seal.Forwarder, present func(string, [wire.PublicKeyLen]byte) bool) *handshake.Terms {
	return &handshake.Terms{Secret: c.Secret, NAT: c.NAT != nil, HostKey: c.HostKey, Keys: keys, Ticket: c.Ticket,
		Strict: c.strict, Present: present}
}

// strangers returns the part of the configuration that bounds strangers.
func (c *Config) strangers() strangers.Limits {
	return strangers.Limits{Unjoined: c.MaxUnjoined, UnjoinedFrom: c.MaxUnjoinedFrom, LinksFrom: c.MaxLinksFrom,
		Gathering: c.MaxGathering, GatheringFrom: c.MaxGatheringFrom}
}

// relay returns the part of the configuration for package relay. memory is the budget of all links.
func (c *Config) relay(memory *budget.Budget) relay.Config {
	return relay.Config{Memory: memory,
		Joining:    budget.New(budget.Joining(c.Memory)),
		ReadBuffer: c.ReadBuffer, FlowLimit: c.FlowLimit, ControlLimit: c.ControlLimit,
		PipeFrom: c.pipeFrom, PipeSize: c.pipeSize,
		Waited: c.Meters.Waited, Length: c.Meters.Length,
		PingInterval: c.PingInterval, PeerTimeout: c.PeerTimeout, Unreachable: c.Unreachable, Linger: c.Linger,
		Log: c.Log}
}

package engine

import (
	"context"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// World is who takes part in the job.
type World = world.World

// Opener opens the link to a process that can be reached directly; nil: that process does so, and
// Engine.DirectUp is called.
type Opener = link.Opener

// Recorder keeps a process's traffic.
type Recorder = pt2pt.Recorder

// DefaultLastWay is Limits.LastWay where that is 0.
const DefaultLastWay = link.DefaultLastWay

// MaxRails bounds the forwarders of a job.
const MaxRails = link.MaxRails

// Config is what an engine starts with.
type Config struct {
	World  World
	Native Native
	// Links are joined links to forwarders, 1 to MaxRails, none if there is one cluster; nil: not
	// there yet. At least one of them is there.
	Links []transport.Link
	// Addresses name the forwarders of Links to the user. May be nil.
	Addresses []string
	// Redial opens the link of a place in Links again after it was lost, or for the first time; it
	// tries until ctx ends. leaves: all is done but the good-bye. nil: never again.
	Redial func(ctx context.Context, rail int, leaves bool) (transport.Link, error)

	// Routes are for jobs of several hops. For each cluster they have the places in Links of those
	// that lead there, one for each row of forwarders (for one's own cluster: any). nil: every link
	// leads to all.
	Routes [][]int

	// Direct has an entry for every process to which a link without a forwarder can be made; the
	// other process has one for this.
	Direct map[int]Opener

	// Level says what of frames is checked; equal in all processes.
	Level wire.Level
	// Seal has the keys at level sealed; else nil. It belongs to the engine.
	Seal *sealing.Keys
	// Poll is what Progress does when told to block: sleep on the links (adaptive, event) or not
	// (busy).
	Poll Poll
	// Embedded: this Go runtime serves the engine alone, in a program that is not Go's. Then
	// sleeping threads keep their P; GOMAXPROCS has to be 3 at least: one for the progress thread,
	// one for a sleeper, one for others.
	Embedded bool
	// ZcopyFrom is from how many bytes on messages of the program (KindP2P) are sent from its
	// memory and received into it, over links that can; it must not be Go's. 0: never.
	ZcopyFrom int
	// Warn is told what the user should know though the job goes on, with the engine locked; nil
	// disables warnings.
	Warn func(string)
	// Waits reports what the process waits in; any thread calls it, with the engine locked. nil:
	// the process is never taken to wait, so nothing warns of a job that stands still.
	Waits func() Waits
	// Leave reports whether the program ends the job, so that calls that wait for other processes
	// are to return; any thread calls it. nil: never.
	Leave func() bool
	// Trace is told of every change of a rail's state, with the engine locked; nil: nobody.
	Trace func(string)
	// Recorder is told of the traffic; nil: nobody. It belongs to the engine.
	Recorder Recorder
	// Quiet leaves out the progress thread; somebody must call Progress often. For tests.
	Quiet bool
	// System is what the engine sleeps by; nil: the one that the process runs on.
	System wait.System

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

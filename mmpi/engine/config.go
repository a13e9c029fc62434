package engine

import (
	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/mmpi/engine/limits"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// World is who takes part in the job.
type World = world.World

// Wiring is how a process is linked to the others. Of the program's messages those of kind KindP2P
// may go without copies (ZcopyFrom).
type Wiring = link.Wiring

// Opener opens the link to a process that can be reached directly; nil: that process does so, and
// Engine.DirectUp is called.
type Opener = link.Opener

// Limits are sizes and times.
type Limits = limits.Limits

// Recorder keeps a process's traffic.
type Recorder = pt2pt.Recorder

// DefaultLastWay is Limits.LastWay where that is 0.
const DefaultLastWay = limits.DefaultLastWay

// MaxRails bounds the forwarders of a job.
const MaxRails = link.MaxRails

// Config is what an engine starts with.
type Config struct {
	World  World
	Native Native
	Wiring

	// Poll is what Progress does when told to block: sleep on the links (adaptive, event) or not
	// (busy).
	Poll Poll
	// Embedded: this Go runtime serves the engine alone, in a program that is not Go's. Then
	// sleeping threads keep their P; GOMAXPROCS has to be 3 at least: one for the progress thread,
	// one for a sleeper, one for others.
	Embedded bool
	// Waits reports what the process waits in; any thread calls it, with the engine locked. nil:
	// the process is never taken to wait, so nothing warns of a job that stands still.
	Waits func() Waits
	// Leave reports whether the program ends the job, so that calls that wait for other processes
	// are to return; any thread calls it. nil: never.
	Leave func() bool
	// Recorder is told of the traffic; nil: nobody. It belongs to the engine.
	Recorder Recorder
	// Quiet leaves out the progress thread; somebody must call Progress often. For tests.
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

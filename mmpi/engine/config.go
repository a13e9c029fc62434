package engine

import (
	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/mmpi/engine/limits"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// World describes the clusters and ranks of the job.
type World = world.World

// Wiring describes the links between a process and the others. Of the program's messages those of
// kind KindP2P may go without copies (ZcopyFrom).
type Wiring = link.Wiring

// Opener opens the link to a process that can be reached directly. It is nil if the other process
// opens the link; then Engine.DirectUp is called.
type Opener = link.Opener

// WayOpener opens the direct link to the process that a forwarder names, on demand.
type WayOpener = link.WayOpener

// Attempt has the facts that a forwarder needs when a process opens a link to it again.
type Attempt = link.Attempt

// Limits has the engine's limits on sizes and times.
type Limits = limits.Limits

// Recorder records a process's traffic.
type Recorder = pt2pt.Recorder

// DefaultLastWay is Limits.LastWay where that is 0.
const DefaultLastWay = limits.DefaultLastWay

// MaxRails is the largest number of forwarders to which a process has links.
const MaxRails = link.MaxRails

// Config is the configuration of an engine.
type Config struct {
	World  World
	Native Native
	Wiring

	// Poll says whether a blocking Progress sleeps on the links (adaptive, event) or not (busy).
	Poll Poll
	// Embedded says that this Go runtime serves the engine alone, in a program that is not written
	// in Go. Then sleeping threads keep their P, so GOMAXPROCS must be at least 3: one for the
	// progress thread, one for a sleeper, one for others.
	Embedded bool
	// Waits reports the wait that the process is in. Any thread calls it, with the engine locked.
	// If it is nil the process never counts as waiting, so that no standstill is reported.
	Waits func() Waits
	// Leave reports whether the program ends the job, so that calls that wait for other processes
	// must return. Any thread calls it; nil: the program never does.
	Leave func() bool
	// Recorder records the traffic; nil: no recording. The engine owns it.
	Recorder Recorder
	// OnLoss says that the job goes on when a cluster is lost. It must be equal in all processes.
	OnLoss bool
	// Quiet disables the progress thread, so that the caller must call Progress often. For tests.
	Quiet bool

	Limits Limits // the limits; zero values stand for the defaults
	// Collectives selects the algorithms of collectives. It must be equal in all processes.
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

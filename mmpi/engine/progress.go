package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// Faulted is the result of Progress when memory of the program could not be accessed; see
// TakeBadMemory.
const Faulted = -1

// GiveWay is passed to Progress in place of a time to sleep, and makes it first give the core to
// other threads for a moment.
const GiveWay time.Duration = -1

// Progress moves bytes to and from the links, native messages into posted receives, and
// collectives. It returns more than 0 if anything happened, or Faulted. When nothing happens it
// sleeps on the links for up to block. Application threads only.
func (e *Engine) Progress(block time.Duration) int {
	if block == GiveWay {
		// The yield is made here, not in the program: there Go's monitor would see a thread that
		// stays long in foreign code, and look for more of that every 20 µs.
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	e.lock()
	e.wait.Polled()
	e.coalesce.over()
	if e.wait.TakeDue() {
		(*driver)(e).Tick(e.links.Now())
	}
	n := e.advance()
	if n == 0 && block > 0 && e.poll != PollBusy && e.p2p.Err() == nil {
		if _, natives := e.colls.Count(); natives > 0 || e.p2p.AwaitsNative() {
			block = min(block, e.nap()) // no link reports their end
		}
		e.wait.Block(block)
		n = e.advance()
	}
	if n > 0 {
		e.naps = 0
	}
	if e.links.Memory.Found() {
		n = Faulted
	}
	e.unlock()
	return n
}

// TakeBadMemory returns the memory of the program for which Progress has returned Faulted, or false
// if there is none or another thread has taken it. The caller accesses it as the program would
// (Native.Access), then calls ReleaseBadMemory.
func TakeBadMemory(e *Engine) (BadMemory, bool) {
	e.lock()
	defer e.unlock()
	return e.links.Memory.Take()
}

// ReleaseBadMemory ends the access to memory that TakeBadMemory has returned.
func ReleaseBadMemory(e *Engine) {
	e.lock()
	defer e.unlock()
	e.links.Memory.Release()
}

// nap returns the time to sleep during a wait for native MPI. A wait calls it only after it has
// spun and yielded for as long as that pays (cgo/libmmpi/request/wait.c, which has its own naps):
// then other threads need the core, and a thread that sleeps is scheduled sooner than one that
// yields.
func (e *Engine) nap() time.Duration {
	if e.naps++; e.naps <= shortNaps {
		return shortNap
	}
	return longNap
}

// advance moves bytes, native receives and collectives once. It returns a number greater than 0 if
// anything happened.
func (e *Engine) advance() int {
	if e.p2p.Err() != nil {
		return 0
	}
	n := e.links.Step()
	e.windows.Serve()
	e.consent.serve()
	n += e.p2p.StepNative()
	n += e.colls.Step()
	e.links.FlushPending()
	return n
}

// await makes progress until cond, called with the lock held, returns true. It returns an error if
// the engine fails, if the program ends the job, or after limit (0: no limit); then the error names
// event as missing.
func (e *Engine) await(limit time.Duration, event string, cond func() bool) error {
	begin := e.links.Now()
	for {
		e.lock()
		ok, err := cond(), e.p2p.Err()
		e.unlock()
		switch {
		case ok:
			return nil
		case err != nil:
			return err
		case e.leave():
			return failure(ErrAborted, "the program ends the job")
		case limit > 0 && e.links.Now()-begin > limit:
			return failure(ErrLink, "no %s within %v", event, limit)
		}
		if e.Progress(time.Millisecond) == Faulted {
			if bad, ok := TakeBadMemory(e); ok {
				e.native.Access(bad)
				ReleaseBadMemory(e)
			}
		}
	}
}

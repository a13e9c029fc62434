package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// Faulted is what Progress returns when memory of the program could not be accessed: see
// TakeBadMemory.
const Faulted = -1

// GiveWay instead of a time to sleep: give the core to other threads for a moment first.
const GiveWay time.Duration = -1

// Progress moves what can be moved: bytes to and from the links, native messages into posted
// receives, collectives. It returns more than 0 if anything happened. When nothing does it sleeps
// on the links for up to block. Application threads only. Faulted: see there.
func (e *Engine) Progress(block time.Duration) int {
	if block == GiveWay {
		// The yield is made here, not by the program: there Go's monitor would see a thread that
		// is long in foreign code, and look for more of that every 20 µs.
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
			block = min(block, e.nap()) // no link tells when they are over
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

// TakeBadMemory returns the memory of the program for which Progress has returned Faulted; false:
// there is none, or another thread has taken it. The caller accesses it as the program would
// (Native.Access), then calls ReleaseBadMemory.
func TakeBadMemory(e *Engine) (BadMemory, bool) {
	e.lock()
	defer e.unlock()
	return e.links.Memory.Take()
}

// ReleaseBadMemory tells that the memory was accessed that TakeBadMemory has returned.
func ReleaseBadMemory(e *Engine) {
	e.lock()
	defer e.unlock()
	e.links.Memory.Release()
}

// nap is how long to sleep while native MPI is waited for. A wait comes here only after it has spun
// and given way for as long as that pays (cgo/libmmpi/request/wait.c, which has its own naps): then
// others need the core, and a sleeper is scheduled sooner than one that has yielded.
func (e *Engine) nap() time.Duration {
	if e.naps++; e.naps <= shortNaps {
		return shortNap
	}
	return longNap
}

// advance does everything once.
func (e *Engine) advance() int {
	if e.p2p.Err() != nil {
		return 0
	}
	n := e.links.Step()
	e.windows.Serve()
	n += e.p2p.StepNative()
	n += e.colls.Step()
	e.links.FlushPending()
	return n
}

// await makes progress until cond (called with the lock held) or until the time is over; 0: no
// limit.
func (e *Engine) await(limit time.Duration, what string, cond func() bool) error {
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
			return failure(ErrLink, "no %s within %v", what, limit)
		}
		if e.Progress(time.Millisecond) == Faulted {
			if bad, ok := TakeBadMemory(e); ok {
				e.native.Access(bad)
				ReleaseBadMemory(e)
			}
		}
	}
}

package engine

import "github.com/leidenzipper/zipper/mmpi/engine/fault"

// What simulations need besides. No other thread uses the engine.

// Check compares all counters that are kept by hand with what they count.
func (e *Engine) Check() error { return e.check() }

// Discard frees what Go does not, of a process that was killed: memory that was pinned for native
// MPI.
func (e *Engine) Discard() { e.colls.Fail(fault.Link) }

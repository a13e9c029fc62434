package engine

import "github.com/leidenzipper/zipper/mmpi/engine/fault"

// Methods for simulations, in which no other thread uses the engine.

// Check compares all counters that are kept by hand with what they count.
func (e *Engine) Check() error { return e.check() }

// Discard frees the memory of a killed process that was pinned for native MPI, which Go's collector
// does not free.
func (e *Engine) Discard() { e.colls.Fail(fault.Link) }

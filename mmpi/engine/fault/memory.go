package fault

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BadMemory is memory of the program that the kernel could not read or write for a link (EFAULT):
// the buffer of a message is not mapped, is read-only, or ends too early. The link is not at fault:
// it has kept its place in the stream, and continues from there. The engine's owner gets the
// BadMemory, and accesses the memory as the program would. That ends the process, unless a signal
// handler of the program repairs the mapping.
type BadMemory struct {
	Mem    []byte // rest of the buffer; the fault is in it, not always at its start
	Writes bool   // whether a message was to be received into it; otherwise one was to be sent from it
	What   string // name of the message for the user
}

// maxFaults is the largest number of consecutive faults at the same memory after which the program
// was asked to make it accessible. It ends jobs in which a handler of the program removes the
// access again and again, because they would hang.
const maxFaults = 1000

// Memory records a BadMemory until it is taken. It is not safe for concurrent use.
type Memory struct {
	bad   BadMemory // recorded fault; Mem is nil if there is none, or it was taken
	taken bool      // a thread accesses the memory; faults are not recorded meanwhile
	last  *byte     // place of the last fault
	times int       // number of consecutive faults there
}

// Found reports whether there is a BadMemory to take.
func (m *Memory) Found() bool { return m.bad.Mem != nil }

// Take returns the memory that could not be accessed, and false if there is none. Until Release
// other threads do not get it, because UCX's handler hangs if two threads of a process get SIGSEGV
// at once.
func (m *Memory) Take() (BadMemory, bool) {
	b := m.bad
	m.bad, m.taken = BadMemory{}, m.taken || m.bad.Mem != nil
	return b, b.Mem != nil
}

// Release ends the access to the memory that Take returned, so that faults are recorded again.
func (m *Memory) Release() { m.taken = false }

// Blames reports whether an error concerns memory of the program, and records it. mem was to be
// read or written. owner returns the name of its message, or "" if the memory is not the program's.
// The error that it returns means that the access was tried too often.
func (m *Memory) Blames(err error, mem []byte, writes bool, owner func() string) (bool, error) {
	if !errors.Is(err, unix.EFAULT) || len(mem) == 0 {
		return false, nil
	}
	what := owner()
	if what == "" {
		return false, nil
	}
	if m.taken {
		return true, nil
	}
	m.bad = BadMemory{mem, writes, what}
	if at := unsafe.SliceData(mem); m.last != at {
		m.last, m.times = at, 0
	}
	if m.times++; m.times > maxFaults {
		return true, New(Arg, "the memory at %p, which the program has given for %s, can be accessed by the program, "+
			"but not by the kernel", m.last, what)
	}
	return true, nil
}

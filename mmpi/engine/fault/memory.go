package fault

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BadMemory is memory of the program that the kernel could not read or write for a link (EFAULT):
// the buffer of a message that is not mapped, is read-only, or ends too early. The link is not at
// fault. It has kept its place in the stream, and goes on from there. The engine's owner is told,
// and accesses the memory as the program would: that ends the process, unless a signal handler of
// the program's repairs the mapping.
type BadMemory struct {
	Mem    []byte // the rest of the buffer; the fault is in it, not always at its start
	Writes bool   // a message was to be received into it, else sent from it
	What   string // names the message to the user
}

// maxFaults bounds how often in a row the kernel may refuse to access the same memory though the
// program was asked to make it accessible. Trades a job that ends because a handler of the
// program's takes the access away again and again against one that hangs.
const maxFaults = 1000

// Memory notes BadMemory until it is taken. Not safe for concurrent use.
type Memory struct {
	bad   BadMemory // Mem is nil where there is none, or it was taken
	taken bool      // somebody accesses the memory; faults are not noted meanwhile
	last  *byte     // where the last fault was
	times int       // how often in a row it was there
}

// Found reports whether there is a BadMemory to take.
func (m *Memory) Found() bool { return m.bad.Mem != nil }

// Take returns the memory that could not be accessed; false: there is none. Until Release no other
// thread is told: where two threads of a process get SIGSEGV at once, UCX's handler hangs.
func (m *Memory) Take() (BadMemory, bool) {
	b := m.bad
	m.bad, m.taken = BadMemory{}, m.taken || m.bad.Mem != nil
	return b, b.Mem != nil
}

// Release tells that the memory was accessed.
func (m *Memory) Release() { m.taken = false }

// Blames reports whether an error is about memory of the program's, and notes it. mem was to be
// read or written; owner names its message, or returns "" if the memory is not the program's. The
// error it returns is why nothing helps: the access was tried too often.
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

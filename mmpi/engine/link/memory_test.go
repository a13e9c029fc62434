package link

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// named is a message's owner, with the name of the message.
type named string

func (n named) String() string { return string(n) }

// mapped returns memory that is not Go's. The process can access the second half only after a call
// of allow.
func mapped(t *testing.T, size int) (mem []byte, allow func()) {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	protect := func(prot int) {
		if err := unix.Mprotect(mem[size/2:], prot); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	protect(unix.PROT_NONE)
	return mem, func() { protect(unix.PROT_READ | unix.PROT_WRITE) }
}

// TestBadMemoryKeepsLink checks that a buffer which ends before its message does not cost the link.
// The set names the message and the place, loses nothing, and goes on when the memory can be
// accessed.
func TestBadMemoryKeepsLink(t *testing.T) {
	const size = 4 << 20
	for _, writes := range []bool{true, false} {
		t.Run(map[bool]string{true: "receive", false: "send"}[writes], func(t *testing.T) {
			u := tcpPair(t)
			bad, allow := mapped(t, size)
			good := pattern(1, size)
			from, to, guilty := good, bad, u[1].set
			if !writes {
				from, to, guilty = bad, make([]byte, size), u[0].set
				copy(bad[:size/2], good)
			}
			u[0].send(u[1], 1, from, to)
			u[0].sources[1].Owner, u[1].sinks[1].Owner = named("a message"), named("a message")
			step := func(until func() bool) {
				t.Helper()
				for range 1_000_000 {
					if u[0].set.Step(); u[1].set.Step() >= 0 && until() {
						return
					}
				}
				t.Fatal("it stands still")
			}
			step(guilty.Memory.Found)
			b, ok := guilty.Memory.Take()
			if !ok || b.Writes != writes || b.What != "a message" || len(b.Mem) == 0 {
				t.Fatalf("%v %+v", ok, b)
			}
			if guilty.Memory.Found() {
				t.Error("it is there after it was taken")
			}
			for range 100 { // The access is tried again, and not reported again.
				u[0].set.Step()
				u[1].set.Step()
			}
			if guilty.Memory.Found() {
				t.Error("it is there again before it was released")
			}
			guilty.Memory.Release()
			step(guilty.Memory.Found)
			guilty.Memory.Take()
			allow()
			guilty.Memory.Release()
			if !writes {
				copy(bad[size/2:], good[size/2:])
			}
			step(func() bool { return u[1].filled[1] })
			if !bytes.Equal(to, good) {
				t.Error("it has arrived otherwise")
			}
			for i := range u {
				if r := u[i].set.Status()[0]; !r.Up || r.Losses != 0 || u[i].failed != "" {
					t.Errorf("rank %d: %+v, failed %q", i, r, u[i].failed)
				}
			}
		})
	}
}

// TestBadMemoryEndsJob checks that memory which the program can access and the kernel cannot ends
// the job after a while, with an error about the memory.
func TestBadMemoryEndsJob(t *testing.T) {
	u := tcpPair(t)
	bad, _ := mapped(t, 4<<20)
	u[0].send(u[1], 1, pattern(1, len(bad)), bad)
	u[1].sinks[1].Owner = named("a message")
	for range 1_000_000 {
		if u[0].set.Step(); u[1].failed != "" {
			break
		}
		u[1].set.Step()
		u[1].set.Memory.Take()
		u[1].set.Memory.Release()
	}
	if !bytes.Contains([]byte(u[1].failed), []byte("but not by the kernel")) {
		t.Errorf("it fails with %q", u[1].failed)
	}
}

package ready

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/mmpi/engine/wait"
)

// TestOnlyReadableDescriptorsMustBeRead checks that of several descriptors only those with
// something to read must be read, once for each look, and that a descriptor outside the set always
// must.
func TestOnlyReadableDescriptorsMustBeRead(t *testing.T) {
	system := wait.NewLinux()
	s := New(system)
	defer s.Close()
	var fds [4]int
	var entries [4]Entry
	for i := range fds {
		fd, err := system.Event()
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		fds[i] = fd
		s.Add(&entries[i], fd)
		s.Add(&entries[i], fd) // has no effect
	}
	check := func(what string, want ...bool) {
		t.Helper()
		if !s.Look() {
			t.Fatalf("%s: the set cannot tell", what)
		}
		// The second round is that of entries reported before.
		for round, w := range [2][]bool{want, make([]bool, len(want))} {
			for i := range want {
				if got := entries[i].MayRead(); got != (w[i] || entries[i].set == nil) {
					t.Errorf("%s, round %d: descriptor %d: %v", what, round, i, got)
				}
			}
		}
	}
	check("nothing", false, false, false, false)
	system.Signal(fds[2])
	check("one", false, false, true, false)
	check("one that was not read", false, false, true, false)
	system.Drain(fds[2])
	check("nothing again", false, false, false, false)
	system.Signal(fds[0])
	system.Signal(fds[3])
	entries[3].Remove()
	entries[3].Remove() // has no effect
	check("one in the set, one outside", true, false, false, true)
	for i := range entries {
		entries[i].Remove()
	}
	if len(s.entries) != 0 {
		t.Errorf("%d entries are left", len(s.entries))
	}
}

// TestNumberOfClosedDescriptor checks that an entry whose descriptor the program has closed does
// not remove the one that has the number now.
func TestNumberOfClosedDescriptor(t *testing.T) {
	system := wait.NewLinux()
	s := New(system)
	defer s.Close()
	var old, young Entry
	fd, err := system.Event()
	if err != nil {
		t.Fatal(err)
	}
	s.Add(&old, fd)
	unix.Close(fd)
	another, err := system.Event()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(another)
	other := fd
	if err := unix.Dup3(another, other, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	s.Add(&young, other)
	old.Remove()
	system.Signal(other)
	if !s.Look() || !young.MayRead() {
		t.Error("the descriptor is not watched any more")
	}
}

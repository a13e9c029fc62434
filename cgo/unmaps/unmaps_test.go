package unmaps

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/leidenzipper/zipper/internal/optional"
)

// preloaded compiles the library and a program of testdata, and returns the program's path and its
// command with the library preloaded.
func preloaded(t *testing.T, name string) (prog string, c *exec.Cmd) {
	t.Helper()
	optional.Program(t, "cc")
	dir := t.TempDir()
	lib, prog := filepath.Join(dir, Library), filepath.Join(dir, name)
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-fvisibility=hidden", "-fexceptions", "-o", lib, "preload/unmaps.c", "-ldl", "-lpthread"},
		{"-o", prog, "testdata/" + name + ".c", "-ldl", "-lpthread"},
	} {
		if out, err := exec.Command("cc", append([]string{"-std=gnu11", "-O1", "-Wall"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("cc %v: %v\n%s", args, err, out)
		}
	}
	c = exec.Command(prog)
	c.Env = append(os.Environ(), "LD_PRELOAD="+lib)
	return prog, c
}

// TestLitmusNotes checks on processors with a weak memory order that a note whose number is right
// is whole. An emulator on x86-64 has that processor's strong order.
func TestLitmusNotes(t *testing.T) {
	_, c := preloaded(t, "litmus")
	out, err := c.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "all whole") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestNotes checks that every way to unmap memory is noted.
func TestNotes(t *testing.T) {
	prog, c := preloaded(t, "gives")
	out, err := c.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "all noted") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.Command(prog).CombinedOutput(); err == nil || !strings.Contains(string(out), "not preloaded") {
		t.Errorf("without the library: %v %s", err, out)
	}
}

const notes = 1024

// layout is that of zu_list.
type layout struct {
	count uint64
	note  [notes]struct{ number, from, to uint64 }
}

func (l *layout) add(from, to uint64) {
	n := &l.note[l.count%notes]
	l.count++
	n.number, n.from, n.to = l.count, from, to
}

func TestSince(t *testing.T) {
	mem := new(layout)
	x := new(List)
	*(*unsafe.Pointer)(unsafe.Pointer(x)) = unsafe.Pointer(mem)
	seen := uint64(0)
	read := func(want ...string) {
		t.Helper()
		var got []string
		seen = x.Since(seen, func(from, to uintptr) {
			if to == ^uintptr(0) {
				to = 0
			}
			got = append(got, fmt.Sprint(from, "-", to))
		})
		if seen != mem.count || !slices.Equal(got, want) {
			t.Errorf("%d of %d: %q, want %q", seen, mem.count, got, want)
		}
	}
	read()
	mem.add(10, 20)
	mem.add(30, 40)
	read("10-20", "30-40")
	read()
	for i := range uint64(notes) {
		mem.add(i, i+1)
	}
	last := seen
	seen++ // as many as there is room for, less one
	if n := 0; x.Since(seen, func(uintptr, uintptr) { n++ }) != mem.count || n != notes-1 {
		t.Errorf("%d notes", n)
	}
	mem.add(5, 6)
	seen = last
	read("0-0") // one more than there is room for: the whole address space
	mem.add(7, 8)
	mem.add(9, 10)
	mem.note[(mem.count-2)%notes].number = 0 // the note is being written
	read("0-0")
	if _, err := Find(); err == nil || !strings.Contains(err.Error(), Library) {
		t.Errorf("found: %v", err)
	}
}

package highfd

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func event(t *testing.T) int {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestRaise checks that a descriptor moves above the floor, and stays what it is where there is no
// number left.
func TestRaise(t *testing.T) {
	low := event(t)
	high := Raise(low)
	defer unix.Close(high)
	if high < Floor() || Floor() == 0 {
		t.Errorf("%d became %d, below %d", low, high, Floor())
	}
	if flags, err := unix.FcntlInt(uintptr(high), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
	if _, err := unix.FcntlInt(uintptr(low), unix.F_GETFD, 0); err == nil {
		t.Errorf("%d is still open", low)
	}

	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 16
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) }()
	if got := Floor(); got != 12 {
		t.Errorf("floor %d of 16 numbers", got)
	}
	var all []int
	for range 16 {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			break
		}
		all = append(all, Raise(fd))
	}
	for _, fd := range all {
		if err := unix.Close(fd); err != nil {
			t.Errorf("%d: %v", fd, err)
		}
	}
	if len(all) == 0 {
		t.Error("no descriptor could be made at all")
	}
}

// TestOccupy checks that descriptors get numbers above the floor while the low ones are taken, and
// that none is left taken afterwards.
func TestOccupy(t *testing.T) {
	before := event(t)
	unix.Close(before)
	release := Occupy()
	during := event(t)
	defer unix.Close(during)
	release()
	if during < Floor() {
		t.Errorf("made while the low numbers were taken: %d, below %d", during, Floor())
	}
	after := event(t)
	defer unix.Close(after)
	if after != before {
		t.Errorf("the lowest free number was %d, and is %d afterwards", before, after)
	}
}

// TestOccupyLeavesRoom checks that low numbers stay free where there are not enough high ones.
func TestOccupyLeavesRoom(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 4*spare - 4 // one less than spare from the floor on
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) }()
	before := event(t)
	unix.Close(before)
	release := Occupy()
	defer release()
	during := event(t)
	defer unix.Close(during)
	if during > before+1 { // Occupy may keep one
		t.Errorf("the lowest free number was %d, and is %d meanwhile", before, during)
	}
}

// asPoller has the test program be a process in which nothing has used the poller yet.
const asPoller = "ZIPPER_TEST_POLLER"

func TestMain(m *testing.M) {
	if os.Getenv(asPoller) == "" {
		os.Exit(m.Run())
	}
	release := Occupy()
	r, w, err := os.Pipe()
	release()
	if err != nil {
		panic(err)
	}
	r.Close()
	w.Close()
	for fd := range 2 * highest {
		if at, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil && strings.HasPrefix(at, "anon_inode:") {
			fmt.Println(at, fd, fd >= Floor())
		}
	}
}

// TestPoller checks that both descriptors of the runtime's poller get high numbers where the first
// file is made while the low ones are taken, and that no other descriptor is left open.
func TestPoller(t *testing.T) {
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), asPoller+"=1")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	said := string(out)
	if strings.Count(said, "\n") != 2 || strings.Count(said, "true") != 2 || !strings.Contains(said, "eventpoll") {
		t.Errorf("the poller's descriptors: %s", said)
	}
}

// TestDup checks that a duplicate gets a high number, and any number where none is left.
func TestDup(t *testing.T) {
	fd := event(t)
	defer unix.Close(fd)
	high, err := Dup(fd)
	if err != nil || high < Floor() {
		t.Errorf("a duplicate has the number %d, %v", high, err)
	}
	unix.Close(high)
	if _, err := Dup(-1); err != unix.EBADF {
		t.Errorf("a duplicate of nothing: %v", err)
	}
}

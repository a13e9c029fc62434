package highfd

import (
	"os"
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

// TestOccupy checks that what is made meanwhile is above the floor, and that nothing is left taken.
func TestOccupy(t *testing.T) {
	before := event(t)
	unix.Close(before)
	release := Occupy()
	during := event(t)
	defer unix.Close(during)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	release()
	if during < Floor() || int(r.Fd()) < Floor() {
		t.Errorf("made while the low numbers were taken: %d, %d, below %d", during, r.Fd(), Floor())
	}
	after := event(t)
	defer unix.Close(after)
	if after != before {
		t.Errorf("the lowest free number was %d, and is %d afterwards", before, after)
	}
}

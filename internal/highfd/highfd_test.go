package highfd

import (
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

// TestRaise checks that a descriptor moves above the floor, and keeps its number where no such
// number is left.
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

// TestDup checks that a duplicate gets a high number, or any number where none is left.
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

// TestNumbersRise checks that a number whose descriptor was closed is not given to the next one,
// nor to any before the span ends, and that numbers begin again at the floor then.
func TestNumbersRise(t *testing.T) {
	first := Raise(event(t))
	unix.Close(first)
	again := 0
	for n := 1; n <= 2*span; n++ {
		fd := Raise(event(t))
		unix.Close(fd)
		if fd >= Floor()+span {
			t.Fatalf("number %d, more than %d above the floor", fd, span)
		}
		if fd == first {
			again = n
			break
		}
	}
	if again < span/2 {
		t.Errorf("the number %d was given again after %d others", first, again)
	}
}

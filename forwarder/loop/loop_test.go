package loop

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// end is one end of a pair of sockets, whose handler notes what it is told.
type end struct {
	fd    int
	ready bool // Arm says so, once
	calls []string
	on    func(what string)
}

func (e *end) FD() int      { return e.fd }
func (e *end) WriteFD() int { return e.fd }

func (e *end) Arm() bool {
	r := e.ready
	e.ready = false
	return r
}

func (e *end) note(what string) {
	e.calls = append(e.calls, what)
	if e.on != nil {
		e.on(what)
	}
}

func (e *end) Readable() {
	var p [64]byte
	_, _ = unix.Read(e.fd, p[:]) // EAGAIN is expected: an armed source may have no input
	e.note("read")
}

func (e *end) Writable()      { e.note("write") }
func (e *end) Tick(time.Time) { e.note("tick") }

// handled compares the calls since the last time.
func (e *end) handled(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(e.calls, want) {
		t.Errorf("told %q, want %q", e.calls, want)
	}
	e.calls = nil
}

// fixture is a loop with two watched ends of a connection, and a clock that stands still.
type fixture struct {
	l    *Loop
	now  time.Time
	a, b *end
	w    *Watch // the registration of a with l
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{now: time.Unix(1000, 0)}
	var err error
	if f.l, err = New(Config{Poll: Event, Tick: time.Second, Now: func() time.Time { return f.now }}); err != nil {
		t.Fatal(err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.l.Close()
		unix.Close(fds[0])
		unix.Close(fds[1])
	})
	f.a, f.b = &end{fd: fds[0]}, &end{fd: fds[1]}
	if f.w, err = f.l.Add(f.a, f.a); err != nil {
		t.Fatal(err)
	}
	if _, err = f.l.Add(f.b, f.b); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) write(t *testing.T, e *end) {
	t.Helper()
	if _, err := unix.Write(e.fd, []byte{1}); err != nil {
		t.Fatal(err)
	}
}

func TestReadiness(t *testing.T) {
	f := newFixture(t)
	if f.l.Step() {
		t.Error("found something where nothing is")
	}
	f.write(t, f.b)
	if !f.l.Step() {
		t.Error("found nothing")
	}
	f.a.handled(t, "read")
	f.b.handled(t)
	f.a.ready = true // it was read, so it is armed, and has something already
	f.l.Step()
	f.a.handled(t, "read")
	if err := f.w.ArmWrite(true); err != nil {
		t.Fatal(err)
	}
	f.write(t, f.b)
	f.l.Step()
	f.a.handled(t, "write", "read")
	if err := f.w.ArmWrite(false); err != nil {
		t.Fatal(err)
	}
	f.l.Step()
	f.a.handled(t)
}

func TestTicks(t *testing.T) {
	f := newFixture(t)
	f.now = f.now.Add(999 * time.Millisecond)
	f.l.Step()
	f.a.handled(t)
	f.now = f.now.Add(time.Millisecond)
	f.l.Step()
	f.a.handled(t, "tick")
	f.b.handled(t, "tick")
	if !f.l.Now().Equal(f.now) {
		t.Errorf("it is %v, the loop says %v", f.now, f.l.Now())
	}
	f.l.Step()
	f.a.handled(t)
}

// TestRemove checks that a handler is not called once its source has been removed, even by the
// handler itself, and that its index can be used again.
func TestRemove(t *testing.T) {
	f := newFixture(t)
	f.a.on = func(string) {
		if err := f.w.Remove(); err != nil {
			t.Error(err)
		}
	}
	if err := f.w.ArmWrite(true); err != nil {
		t.Fatal(err)
	}
	f.write(t, f.b)
	f.l.Step()
	f.a.handled(t, "write") // not read any more
	f.a.on = nil
	f.l.Step()
	f.now = f.now.Add(time.Second)
	f.l.Step()
	f.a.handled(t)
	w, err := f.l.Add(f.a, f.a)
	if err != nil || w.slot != f.w.slot {
		t.Fatalf("%+v, %v", w, err)
	}
	f.l.Step()
	f.a.handled(t, "read")
}

// TestPost checks that posted functions run in order, then the loop stops, and no more can be
// posted.
func TestPost(t *testing.T) {
	f := newFixture(t)
	var got []int
	for i := range 3 {
		f.l.Post(func() {
			got = append(got, i)
			if i == 0 {
				f.l.Post(func() { got = append(got, 10) })
			}
		})
	}
	f.l.Stop()
	f.l.Run()
	if !slices.Equal(got, []int{0, 1, 2}) && !slices.Equal(got, []int{0, 1, 2, 10}) {
		t.Errorf("done %v", got)
	}
	if f.l.Post(func() {}) {
		t.Error("posted to a loop that has ended")
	}
}

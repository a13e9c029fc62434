package wait

import (
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/highfd"
)

// fakeDriver is a driver without links.
type fakeDriver struct {
	sync.Mutex
	w       *Waiter
	start   time.Time
	ticks   int
	flushes int
	busy    bool // whether Quiet returns false
	ended   bool
	closed  int // number of calls of EventsClosed
	links   []unix.PollFd
}

func (d *fakeDriver) Unlock()                              { d.w.Alert(false); d.Mutex.Unlock() }
func (d *fakeDriver) Now() time.Duration                   { return time.Since(d.start) }
func (d *fakeDriver) Step() int                            { return 0 }
func (d *fakeDriver) Tick(time.Duration)                   { d.ticks++ }
func (d *fakeDriver) Flush()                               { d.flushes++ }
func (d *fakeDriver) Ended() bool                          { return d.ended }
func (d *fakeDriver) Quiet() bool                          { return !d.busy }
func (d *fakeDriver) Pending() bool                        { return false }
func (d *fakeDriver) Arm() bool                            { return false }
func (d *fakeDriver) Poll(set []unix.PollFd) []unix.PollFd { return append(set, d.links...) }
func (d *fakeDriver) EventsClosed()                        { d.closed, d.ended = d.closed+1, true }
func (d *fakeDriver) look()                                { d.Lock(); d.w.Polled(); d.tickIfDue(); d.Unlock() }
func (d *fakeDriver) sleep(t time.Duration)                { d.Lock(); d.w.Polled(); d.w.Block(t); d.Unlock() }
func (d *fakeDriver) leave(f func())                       { d.Lock(); f(); d.Unlock() }
func (d *fakeDriver) tickIfDue() {
	if d.w.TakeDue() {
		d.Tick(d.Now())
	}
}

func newFake(t *testing.T) (*fakeDriver, *Waiter) {
	w := new(Waiter)
	d := &fakeDriver{w: w, start: time.Now()}
	if err := w.Open(NewLinux(), d, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return d, w
}

// readable reports whether a descriptor becomes readable within a time.
func readable(t *testing.T, fd int, within time.Duration) bool {
	t.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(within.Milliseconds()))
	if err != nil {
		t.Error(err)
	}
	return n == 1
}

// TestTickWhileLocked checks that the progress thread does not wait for a thread that has the lock,
// because that may have yielded its core, and that the other thread ticks.
func TestTickWhileLocked(t *testing.T) {
	d, w := newFake(t)
	over := make(chan bool)
	d.Mutex.Lock()
	go func() { over <- w.tick() }()
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Fatal("the progress thread waits for the lock")
	}
	d.Unlock()
	if d.ticks != 0 {
		t.Fatal("ticked without the lock")
	}
	if d.look(); d.ticks != 1 {
		t.Error("no tick")
	}
	if w.tick(); d.ticks != 2 {
		t.Error("no tick although the lock was free")
	}
	if d.look(); d.ticks != 2 {
		t.Error("the program ticks though nothing was left to it")
	}
}

// TestHeldWhileLocked checks that the progress thread does not wait for the lock to flush held
// messages, but retries.
func TestHeldWhileLocked(t *testing.T) {
	d, w := newFake(t)
	over := make(chan bool)
	d.Mutex.Lock()
	go func() {
		w.flush()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Fatal("the progress thread waits for the lock")
	}
	d.Unlock()
	if !readable(t, w.ev.timer, 10*time.Second) {
		t.Error("the timer does not fire again")
	}
	if w.flush(); d.flushes != 1 {
		t.Errorf("flushed %d times", d.flushes)
	}
}

// TestMultiplesEndTogether checks that sleeps until multiples end at the same times in all
// processes.
func TestMultiplesEndTogether(t *testing.T) {
	clock := func() time.Duration {
		var at unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
			t.Fatal(err)
		}
		return time.Duration(at.Nano())
	}
	for _, d := range []time.Duration{time.Microsecond, TickEvery, 3 * TickEvery, AckEvery} {
		before := clock()
		wait := (Linux{}).UntilMultiple(d)
		after := clock()
		if wait <= 0 || wait > d {
			t.Fatalf("%v until a multiple of %v", wait, d)
		}
		// The clock was read in between.
		if next := before + d - before%d; before/d == after/d && (before+wait > next || after+wait < next) {
			t.Errorf("between %v and %v: %v until a multiple of %v", before, after, wait, d)
		}
	}
}

// TestOnlyWorkWakesProgressThread checks that only a thread that leaves work for a tick, or stops
// sleeping on the links, ends the progress thread's long sleep.
func TestOnlyWorkWakesProgressThread(t *testing.T) {
	for _, c := range []struct {
		name   string
		leave  func(d *fakeDriver)
		roused bool
	}{
		{"leave without work", func(d *fakeDriver) { d.leave(func() {}) }, false},
		{"leave with work for a tick", func(d *fakeDriver) { d.leave(func() { d.busy = true }) }, true},
		{"poll of the links", func(d *fakeDriver) { d.look() }, false},
		{"sleep on the links", func(d *fakeDriver) { d.sleep(time.Millisecond) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, w := newFake(t)
			w.t.idle.Store(true)
			c.leave(d)
			if kicked := readable(t, w.ev.kick, 0); kicked != c.roused || w.Idle() == c.roused {
				t.Errorf("kicked %v, idle %v, want roused: %v", kicked, w.Idle(), c.roused)
			}
		})
	}
}

// TestIdleWhileAThreadSleepsLong checks that the progress thread may idle while an application
// thread sleeps long on the links, and nothing else is to be done. After a short sleep the progress
// thread would be roused at once.
func TestIdleWhileAThreadSleepsLong(t *testing.T) {
	d, w := newFake(t)
	for _, c := range []struct {
		sleepers int32
		longest  time.Duration
		owed     bool
		want     bool
	}{
		{1, 5 * AckEvery, false, true},
		{1, time.Millisecond, false, false},
		{0, 5 * AckEvery, false, false},
		{1, 5 * AckEvery, true, false},
	} {
		w.sleepers.Store(c.sleepers)
		w.longest, d.busy = c.longest, c.owed
		if w.tryIdle(); w.Idle() != c.want {
			t.Errorf("%+v: idle %v", c, !c.want)
		}
	}
}

// TestThread checks that the progress thread ticks while no thread polls, and ends with the driver.
func TestThread(t *testing.T) {
	d, w := newFake(t)
	w.Start()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		d.Lock()
		n := d.ticks
		d.Unlock()
		if n >= 3 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no ticks")
		}
	}
	d.leave(func() { d.ended = true })
	w.Stop()
}

// TestCompletionWakesAllSleepers checks that a completion wakes all sleeping threads, in any order
// of their return, so that none sleeps on until its time is over.
func TestCompletionWakesAllSleepers(t *testing.T) {
	d, w := newFake(t)
	const threads = 8
	for range 20 {
		var over sync.WaitGroup
		for range threads {
			over.Go(func() { d.sleep(time.Minute) })
		}
		for w.sleepers.Load() < threads {
			time.Sleep(time.Millisecond)
		}
		begun := time.Now()
		d.Lock()
		w.Alert(true)
		d.Mutex.Unlock()
		over.Wait()
		if took := time.Since(begun); took > 30*time.Second {
			t.Fatalf("all are back after %v only", took)
		}
	}
	if len(w.asleep) != 0 || len(w.awake) != threads {
		t.Errorf("%d asleep, %d events for %d threads", len(w.asleep), len(w.awake), threads)
	}
	for _, s := range w.awake {
		if readable(t, s.wake, 0) {
			t.Error("an event is left signaled: the next sleep would be none")
		}
	}
}

// TestPause checks that the end of a job does not spin on a link that the other end has closed
// already, while another one takes no more.
func TestPause(t *testing.T) {
	d, w := newFake(t)
	pair := func() [2]int {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(p[0]) })
		return p
	}
	gone, full := pair(), pair()
	unix.Close(gone[1])
	defer unix.Close(full[1])
	for err := error(nil); err == nil; _, err = unix.Write(full[0], make([]byte, 1<<16)) {
	}
	d.links = []unix.PollFd{{Fd: int32(gone[0]), Events: unix.POLLIN},
		{Fd: int32(full[0]), Events: unix.POLLIN | unix.POLLOUT}}
	const long = 30 * time.Millisecond
	begin := time.Now()
	if w.Pause(long); time.Since(begin) < long {
		t.Errorf("waked after %v by a link that is closed", time.Since(begin))
	}
	for err := error(nil); err == nil; _, err = unix.Read(full[1], make([]byte, 1<<20)) {
	}
	begin = time.Now()
	if w.Pause(10 * time.Second); time.Since(begin) > 5*time.Second {
		t.Error("not waked by a link that takes more")
	}
}

// TestEventsHaveHighDescriptors checks that the events have numbers that a program does not get for
// its files.
func TestEventsHaveHighDescriptors(t *testing.T) {
	_, w := newFake(t)
	if low := min(w.ev.kick, w.ev.timer, w.bed().wake); low < highfd.Floor() {
		t.Errorf("an event has the number %d, below %d", low, highfd.Floor())
	}
}

// TestClosedEventIsReported checks that neither a thread of the program nor the progress thread
// goes on without a word when the program has closed what it sleeps on.
func TestClosedEventIsReported(t *testing.T) {
	d, w := newFake(t)
	d.sleep(0) // makes an event
	unix.Close(w.awake[0].wake)
	if d.sleep(time.Minute); d.closed != 1 {
		t.Errorf("a thread that slept on a closed event has told of it %d times", d.closed)
	}
	for _, pick := range []func(*Waiter) int{func(w *Waiter) int { return w.ev.kick },
		func(w *Waiter) int { return w.ev.timer }} {
		for _, polled := range []bool{false, true} { // sleeps on the links, or by time
			d, w := newFake(t)
			w.polls.Store(1)
			if polled {
				w.sleepers.Store(1)
			}
			unix.Close(pick(w))
			w.Start()
			w.t.join()
			if d.closed != 1 {
				t.Errorf("the progress thread has told of a closed event %d times", d.closed)
			}
		}
	}
}

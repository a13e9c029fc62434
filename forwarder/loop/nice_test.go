package loop

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ownNice is the nice value of the calling thread.
func ownNice(t *testing.T) int {
	p, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Error(err)
	}
	return 20 - p // as Linux returns it
}

// TestBulk checks that a loop with a negative nice value runs behind others while large segments
// are frequent, and before them again afterwards.
func TestBulk(t *testing.T) {
	done, refused := make(chan struct{}), false
	go func() { // a thread that ends with it
		defer close(done)
		runtime.LockOSThread()
		before := ownNice(t)
		if refused = setNice(before-1) != nil; refused {
			return
		}
		now := time.Now()
		p := priority{nice: before - 1, since: now}
		for i, c := range []struct {
			after time.Duration
			moved int
			want  int
		}{
			{bulkEvery / 2, 100 << 20, p.nice}, // too soon to say
			{bulkEvery, 0, bulkNice},
			{bulkEvery, 5 << 20, bulkNice}, // still half as fast
			{bulkEvery, 1 << 20, p.nice},
			{100 * bulkEvery, 100 << 20, p.nice}, // much, but slowly
		} {
			now = now.Add(c.after)
			p.moved += c.moved
			if p.adapt(now); ownNice(t) != c.want {
				t.Errorf("step %d: nice value %d, want %d", i, ownNice(t), c.want)
			}
		}
		p = priority{nice: before - 1, since: now, fixed: true, moved: 1 << 30}
		if p.adapt(now.Add(bulkEvery)); ownNice(t) != before-1 {
			t.Error("changed, although the system might not let it back")
		}
	}()
	if <-done; refused {
		t.Skip("a nice value below that of the process takes CAP_SYS_NICE")
	}
}

// TestNice checks that the loops' threads have the nice value, and no other thread has. Any user
// may set a value above that of the process.
func TestNice(t *testing.T) {
	if ownNice(t) == 19 {
		t.Skip("this process has the highest nice value already: run the tests with a lower one")
	}
	want := ownNice(t) + 1
	l, err := New(Config{Nice: want, Tick: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	got, over := make(chan int, 1), make(chan struct{})
	go func() { l.Run(); close(over) }()
	l.Post(func() { got <- ownNice(t) })
	l.Stop()
	<-over
	l.Close()
	if n := <-got; n != want {
		t.Errorf("the loop has nice value %d, want %d", n, want)
	}
	all := make(chan int)
	for range 100 { // on the threads that exist now
		go func() { all <- ownNice(t) }()
	}
	for range 100 {
		if n := <-all; n == want {
			t.Fatal("the loop's thread was given to others")
		}
	}
}

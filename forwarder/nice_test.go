package forwarder

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/transport"
)

// The loops' threads have the nice value, and no other thread has. One above that of the process is allowed to everybody.
func TestNice(t *testing.T) {
	priority := func() int {
		p, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Error(err)
		}
		return 20 - p // as Linux returns it
	}
	if priority() == 19 {
		t.Skip("this process has the highest nice value already: run the tests with a lower one")
	}
	want := priority() + 1
	f, err := New(Config{Listeners: make([]transport.Listener, 1), Nice: want})
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLoop(f)
	if err != nil {
		t.Fatal(err)
	}
	f.loops = []*loop{l}
	got, over := make(chan int, 1), make(chan struct{})
	go func() { l.run(); close(over) }()
	l.post(func() { got <- priority() })
	l.stop()
	<-over
	l.free()
	if n := <-got; n != want {
		t.Errorf("the loop has nice value %d, want %d", n, want)
	}
	all := make(chan int)
	for range 100 { // on whatever threads there are now
		go func() { all <- priority() }()
	}
	for range 100 {
		if n := <-all; n == want {
			t.Fatal("the loop's thread was given to others")
		}
	}
}

func TestNiceRange(t *testing.T) {
	for _, n := range []int{-21, 20} {
		if _, err := New(Config{Listeners: make([]transport.Listener, 1), Nice: n}); err == nil {
			t.Errorf("%d was taken", n)
		}
	}
}

//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/bench/lab/delayline"
)

// line has both directions.
type line struct {
	options delayline.Options // guarded by the locks of both directions
	begun   time.Time
	ways    [2]*carrier
}

// carrier is one direction, with a thread of its own.
type carrier struct {
	in, out  int // files of the devices
	from, to string
	begun    time.Time

	mu  sync.Mutex // held except while the thread sleeps
	way *delayline.Way
}

func open(o delayline.Options, one, two string) (*line, error) {
	a, err := tap(one, o.MTU)
	if err != nil {
		return nil, err
	}
	b, err := tap(two, o.MTU)
	if err != nil {
		return nil, err
	}
	l := &line{options: o, begun: time.Now()}
	for i, c := range []*carrier{{in: a, out: b, from: one, to: two}, {in: b, out: a, from: two, to: one}} {
		c.begun = l.begun
		if c.way, err = delayline.NewWay(o, uint64(i)); err != nil {
			return nil, err
		}
		l.ways[i] = c
	}
	return l, nil
}

// start starts the threads; the channel gets the error with which one has ended.
func (l *line) start() <-chan error {
	failed := make(chan error, len(l.ways))
	for _, c := range l.ways {
		go func() { failed <- c.carry() }()
	}
	return failed
}

// stats returns the statistics of both directions.
func (l *line) stats() (all []delayline.Stats) {
	for _, c := range l.ways {
		c.mu.Lock()
		s := c.way.Stats()
		c.mu.Unlock()
		s.From, s.To = c.from, c.to
		all = append(all, s)
	}
	return all
}

func (l *line) print() {
	for _, s := range l.stats() {
		fmt.Fprintln(os.Stderr, "zipper-delayline:", s.String())
	}
}

func (c *carrier) now() time.Duration { return time.Since(c.begun) }

// atOnce is the number of frames that are read before due frames are written.
const atOnce = 32

// longest is the longest time for which a thread sleeps, because Go's collector, which hardly ever
// runs, waits for the thread.
const longest = 100 * time.Millisecond

// carry ends only with an error of the device.
func (c *carrier) carry() error {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // matters without real-time priority
	bin := make([]byte, delayline.MaxFrame)
	looked := c.now()
	for {
		c.mu.Lock()
		now := c.now()
		c.way.Looked(now - looked)
		looked = now
		more, err := c.read(now, bin)
		if err == nil {
			err = c.write()
		}
		next, any := c.way.Next()
		c.mu.Unlock()
		switch {
		case err != nil:
			return fmt.Errorf("%s > %s: %w", c.from, c.to, err)
		case more:
			continue
		}
		wait := longest
		if any {
			wait = next - c.now()
		}
		if wait > 0 {
			if errno := poll(c.in, int64(wait)); errno != 0 && errno != unix.EINTR {
				return fmt.Errorf("%s: %w", c.from, errno)
			}
			looked = c.now()
		}
	}
}

// read reads frames; more tells that there may be others.
func (c *carrier) read(now time.Duration, bin []byte) (more bool, err error) {
	for range atOnce {
		room := c.way.Room()
		full := room == nil
		if full {
			room = bin
		}
		n, errno := read(c.in, room)
		switch {
		case errno == unix.EAGAIN:
			return false, nil
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return false, errno
		case full:
			c.way.Full()
		default:
			c.way.Offer(n, now)
		}
	}
	return true, nil
}

// write writes all frames that are due.
func (c *carrier) write() error {
	for {
		head, payload := c.way.Take(c.now())
		if head == nil {
			return nil
		}
		switch errno := write(c.out, head, payload); errno {
		case 0:
		case unix.EIO, unix.EAGAIN, unix.EINVAL: // the device is down, or refuses such a frame
			c.way.Refused()
		default:
			return errno
		}
	}
}

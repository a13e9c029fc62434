package forwarder

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// flood sends frames of a rank as long as they are accepted, at most a number of bytes.
func flood(r *rank, dst, most int) {
	frame := data(int(r.Rank), dst, 1, make([]byte, 128<<10))
	for sent := 0; sent < most; {
		n, err := r.link.TryWrite(frame[sent%len(frame):])
		if err == nil {
			sent += n
			continue
		}
		p := []unix.PollFd{{Fd: int32(r.link.WriteFD()), Events: unix.POLLOUT}}
		if n, _ := unix.Poll(p, 300); n == 0 {
			break // the forwarder does not read it
		}
	}
}

// TestMemoryOfStrangers checks that six sockets of a stranger, whose ranks send to each other and
// do not read, take no more than a job's share, and that another job on the forwarder goes on as
// before.
func TestMemoryOfStrangers(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.PeerTimeout = time.Minute })
	bad := b.join("bad", wire.Cluster{Name: "a", Size: 3}, wire.Cluster{Name: "b", Size: 3})
	good := b.join("good", twoClusters...)
	for i := range 6 {
		flood(bad[i], (i+3)%6, 60<<20)
	}
	const most = 16<<20 + 6*(1<<20) // including one more read from each
	used := b.f.memory.Used()
	if used > most || used < 8<<20 {
		t.Errorf("six ranks that do not read keep %d bytes, at most %d wanted", used, most)
	}
	for i := range 100 {
		begin := time.Now()
		good[0].send(eager(0, 2, i+1, pattern(1000, i)))
		good[2].expect(wire.TypeEager)
		if d := time.Since(begin); d > 5*time.Second {
			t.Fatalf("a message of another job takes %v", d)
		}
	}
	// One of them goes: that is seen though it is not read.
	bad[0].link.Close()
	if s := b.ended(); s.OK || !strings.Contains(s.Reason, "is lost") {
		t.Errorf("summary %+v", s)
	}
	for _, x := range good {
		x.bye()
	}
	b.ended()
	for _, x := range bad[1:] {
		x.link.Close()
	}
	b.settled()
	if used := b.f.memory.Used(); used != 0 {
		t.Errorf("%d bytes are booked when all are gone", used)
	}
}

// TestMemoryOfJoins checks that the memory for Joins is bounded, and is released.
func TestMemoryOfJoins(t *testing.T) {
	b := start(t, tcpNetwork(), func(c *Config) { c.Memory, c.MaxGatheringFrom = 64<<10, 400 })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	full := make(chan error, 400)
	for i := range 400 {
		id := identity(fmt.Sprintf("j-%d", i), "a", 0, twoClusters...)
		id.Host = strings.Repeat("h", 250)
		go func() {
			_, err := b.dialContext(ctx, id)
			full <- err
		}()
	}
	if err := <-full; err == nil || !strings.Contains(err.Error(), "no memory left (--memory)") {
		t.Fatalf("the first of 400 Joins with 250 bytes each to fail: %v", err)
	}
	if used := b.f.memory.Used(); used > 64<<10 {
		t.Errorf("%d bytes are kept", used)
	}
	cancel()
	for len(b.f.Status().Jobs) > 0 {
		time.Sleep(time.Millisecond)
	}
	if used := b.f.memory.Used(); used != 0 {
		t.Errorf("%d bytes are kept when all are gone", used)
	}
}

// TestMemoryOfTables checks that the tables of a running job, whose size its layout alone
// determines, take memory that the next job may lack, and that it is released.
func TestMemoryOfTables(t *testing.T) {
	const clusters = 200
	b := start(t, tcpNetwork(), func(c *Config) { c.Memory = clusters * clusters * 100 })
	layout := make([]wire.Cluster, clusters)
	var lost []int
	for i := range layout {
		layout[i] = wire.Cluster{Name: fmt.Sprint("c", i), Size: 1}
		if i > 0 {
			lost = append(lost, i)
		}
	}
	var running []*rank
	for i := range 5 { // one rank of each is left
		id := identity(fmt.Sprintf("j-%d", i), "c0", 0, layout...)
		id.Settings, id.Lost = handshake.SettingOnLoss+"=continue", lost
		r, err := b.dial(id)
		if err != nil {
			if !strings.Contains(err.Error(), "no memory left (--memory)") {
				t.Fatal(err)
			}
			break
		}
		running = append(running, r)
	}
	if n := len(running); n != 2 {
		t.Errorf("%d jobs run, want 2, of which the second exceeds the limit", n)
	}
	if used := b.f.memory.Used(); used < 2*clusters*clusters*56 {
		t.Errorf("two jobs take %d bytes", used)
	}
	for _, r := range running {
		r.link.Close()
		b.ended()
	}
	b.settled()
	if used := b.f.memory.Used(); used != 0 {
		t.Errorf("%d bytes are kept when all are gone", used)
	}
}

//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/bench/lab/delayline"
	"github.com/leidenzipper/zipper/internal/optional"
)

// bed is a line between two namespaces, and a UDP socket in each.
type bed struct {
	*testing.T
	line     *line
	from, to *net.UDPConn
	arrived  chan arrival
}

// arrival is the arrival of a datagram. Times are the kernel's, because on a busy machine the test
// runs much later.
type arrival struct {
	number int
	// took is the time from sending to arrival.
	took time.Duration
	// at is the arrival by the real-time clock.
	at time.Duration
}

var beds atomic.Int32

func newBed(t *testing.T, o delayline.Options) *bed {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for network namespaces")
	}
	optional.Processor(t, "the speed that exact delays need")
	for _, needed := range []string{"/dev/net/tun", "/proc/self/ns/net"} {
		if _, err := os.Stat(needed); err != nil {
			t.Skip(err)
		}
	}
	b := &bed{T: t, arrived: make(chan arrival, 1<<16)}
	ip := func(words string) {
		t.Helper()
		if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", words, err, out)
		}
	}
	name := fmt.Sprintf("zd%d-%d-", os.Getpid(), beds.Add(1))
	for _, end := range []string{"a", "b"} {
		ip("netns add " + name + end)
		t.Cleanup(func() { ip("netns del " + name + end) })
		// IPv6 is off, because it sends packets of its own to find routers.
		ip("netns exec " + name + end + " sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
	}
	var err error
	if b.line, err = open(o, name+"a:wan", name+"b:wan"); err != nil {
		t.Fatal(err)
	}
	runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0)))               // the carriers keep two
	b.line.start()                                                  // ends with the devices
	for end, other := range map[string]string{"a": "2", "b": "1"} { // so that no node asks for an Ethernet address
		own := string('1' + '2' - other[0])
		ip("-n " + name + end + " link set dev wan address 02:00:00:00:00:0" + own)
		ip("-n " + name + end + " addr add 10.9.0." + own + "/24 dev wan")
		ip("-n " + name + end + " neigh add 10.9.0." + other + " lladdr 02:00:00:00:00:0" + other +
			" dev wan nud permanent")
	}
	b.from = b.listen(name+"a", "10.9.0.1:9000")
	b.to = b.listen(name+"b", "10.9.0.2:9000")
	go b.receive()
	return b
}

// listen opens a socket in a namespace.
func (b *bed) listen(space, address string) *net.UDPConn {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	back, err := enter(space)
	if err != nil {
		b.Fatal(err)
	}
	defer back()
	c, err := net.ListenPacket("udp4", address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	u := c.(*net.UDPConn)
	raw, err := u.SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
	})
	if err != nil {
		b.Fatal(err)
	}
	return u
}

func (b *bed) receive() {
	m, control := make([]byte, 2000), make([]byte, 200)
	for {
		n, c, _, _, err := b.to.ReadMsgUDP(m, control)
		if err != nil {
			return
		}
		if at, ok := timestamp(control[:c]); ok && n >= 16 {
			sent := time.Duration(binary.BigEndian.Uint64(m[8:]))
			b.arrived <- arrival{int(binary.BigEndian.Uint64(m)), at - sent, at}
		}
	}
}

// timestamp returns the time of SO_TIMESTAMPNS, a struct timespec.
func timestamp(control []byte) (time.Duration, bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) == 16 {
			sec, nsec := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
			return time.Duration(sec)*time.Second + time.Duration(nsec), true
		}
	}
	return 0, false
}

// send sends n datagrams of a length with a time between them, and returns n.
func (b *bed) send(n, bytes int, apart time.Duration) int {
	b.Helper()
	m := make([]byte, bytes)
	for i := range n {
		binary.BigEndian.PutUint64(m, uint64(i))
		binary.BigEndian.PutUint64(m[8:], uint64(time.Now().UnixNano()))
		if _, err := b.from.WriteTo(m, b.to.LocalAddr()); err != nil {
			b.Fatal(err)
		}
		time.Sleep(apart)
	}
	return n
}

// await returns so many arrivals.
func (b *bed) await(want, sent int) (all []arrival) {
	b.Helper()
	timeout := time.After(20 * time.Second)
	for len(all) < want {
		select {
		case a := <-b.arrived:
			all = append(all, a)
		case <-timeout:
			b.Fatalf("%d of %d datagrams came, %d were sent; %+v", len(all), want, sent, b.line.stats())
		}
	}
	return all
}

// settled waits until the line has seen so many packets from the first end, and returns its
// statistics.
func (b *bed) settled(packets int) delayline.Stats {
	b.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		s := b.line.stats()[0]
		if seen := s.Packets + s.Lost + s.Oversized + s.Cut + s.Dropped; int(seen) >= packets {
			return s
		} else if time.Now().After(end) {
			b.Fatalf("the line has seen %d packets of %d", seen, packets)
		}
	}
}

func (b *bed) tell(words string) {
	b.Helper()
	if answer, err := b.line.command(strings.Fields(words)); err != nil || answer != "ok" {
		b.Fatalf("%s: %s, %v", words, answer, err)
	}
}

// TestLineKeepsItsOptions checks that delay, rate, loss, black hole and cut are as requested, in a
// real network.
func TestLineKeepsItsOptions(t *testing.T) {
	o := delayline.Defaults()
	o.Delay, o.Rate, o.Queue = 20*time.Millisecond, 10e6, 2_000_000
	b := newBed(t, o)

	t.Run("delay", func(t *testing.T) {
		b.T = t
		var took []time.Duration
		for _, a := range b.await(50, b.send(50, 100, time.Millisecond)) {
			took = append(took, a.took)
		}
		// A packet takes 0.13 ms on the line. The upper bound is for busy machines; the line
		// reports its own lateness.
		if least := slices.Min(took); least < o.Delay || least > o.Delay+5*time.Millisecond+b.line.stats()[0].LateMax {
			t.Errorf("under way for %v at least, want %v", least, o.Delay)
		}
	})
	t.Run("rate", func(t *testing.T) {
		b.T = t
		const n, bytes = 200, 1000 // and 66 of UDP, IP, Ethernet
		begin := time.Now()
		b.send(n, bytes, 0)
		sending := time.Since(begin) // long if the test had to wait for a processor, and the line for the test
		all := b.await(n, n)
		want := time.Duration(float64((n-1)*(bytes+66)*8) / 10e6 * 1e9)
		got, late := all[n-1].at-all[0].at, 5*time.Millisecond+b.line.stats()[0].LateMax
		if got < want-late || got > want+late+sending {
			t.Errorf("%d datagrams, sent in %v, came in %v, want %v", n, sending, got, want)
		}
		for i, a := range all {
			if a.number != i {
				t.Fatalf("datagram %d came as number %d", a.number, i)
			}
		}
	})
	t.Run("loss", func(t *testing.T) {
		b.T = t
		b.tell("set rate=off queue=0 loss=20%")
		b.tell("reset")
		const n = 3000
		b.send(n, 100, 0)
		s := b.settled(n)
		if sigma := math.Sqrt(n * 0.2 * 0.8); math.Abs(float64(s.Lost)-n*0.2) > 5*sigma {
			t.Errorf("lost %d of %d, want 20 %% +- %.0f", s.Lost, n, 5*sigma)
		}
		b.await(int(s.Packets), n) // as many arrive as the line reports
	})
	t.Run("black hole", func(t *testing.T) {
		b.T = t
		b.tell("set loss=0 blackhole=1400")
		b.tell("reset")
		b.send(1, 1373, 0) // 1401 with UDP and IP
		b.send(1, 1372, 0)
		if s := b.settled(2); s.Oversized != 1 {
			t.Errorf("%+v", s)
		}
		b.await(1, 2)
	})
	t.Run("cut", func(t *testing.T) {
		b.T = t
		b.tell("set blackhole=0")
		b.tell("reset")
		b.tell("cut 1h")
		if s := b.settled(b.send(50, 100, 0)); s.Cut != 50 || s.Packets != 0 {
			t.Errorf("while the line is cut: %+v", s)
		}
		b.tell("cut 0s")
		b.await(20, b.send(20, 100, 0))
		if s := b.settled(70); s.Cut != 50 || s.Packets != 20 {
			t.Errorf("after that: %+v", s)
		}
	})
}

func TestCommandsRefuse(t *testing.T) {
	l := &line{options: delayline.Defaults()}
	for _, c := range []*carrier{{}, {}} {
		way, err := delayline.NewWay(l.options, 0)
		if err != nil {
			t.Fatal(err)
		}
		c.way = way
		l.ways[0], l.ways[1] = l.ways[1], c
	}
	for words, want := range map[string]string{
		"": "want stats", "hello": "hello: want stats", "cut": "want cut TIME", "cut 3": "want a time",
		"cut -3s": "want a time",
		"set":     "want set NAME=VALUE", "set delay": "want a time", "set delay=5s": "more memory",
		"set mtu=1400":         "cannot be changed",
		"set delay=1ms loss=7": "want 0 to 1",
	} {
		if _, err := l.command(strings.Fields(words)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", words, err, want)
		}
	}
	if l.options != delayline.Defaults() {
		t.Errorf("a refused option has taken effect: %+v", l.options)
	}
}

func TestLineEndsWithItsOwner(t *testing.T) {
	for _, owner := range []string{"x", "0", "-1", "99999999"} {
		if _, err := watch(owner); err == nil {
			t.Errorf("owner %s was taken", owner)
		}
	}
	owner := exec.Command("sleep", "60")
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	gone, err := watch(fmt.Sprint(owner.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
		t.Error("the owner is there, and the line ends")
	default:
	}
	_ = owner.Process.Kill()
	var exit *exec.ExitError
	if err := owner.Wait(); !errors.As(err, &exit) {
		t.Error(err)
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the owner has ended, and the line has not")
	}
}

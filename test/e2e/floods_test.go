package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/handshake/handshaketest"
	"github.com/leidenzipper/zipper/internal/wire"
)

// TestFloods lets one address do all that a stranger may do to a forwarder with its default bounds.
// Meanwhile a running job makes progress without a pause of half a second, and jobs join within 2
// s. Status and metrics answer, the forwarder stays within its memory, and its log is short.
func TestFloods(t *testing.T) {
	pair := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}
	huge := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: wire.MaxRanks - 1}}
	join := func(layout []wire.Cluster, half bool) func(net.Conn, int) {
		return func(c net.Conn, i int) {
			id := floodIdentity(fmt.Sprintf("flood-%d", i), 0, layout)
			id.TimeoutMS = 1<<32 - 1
			if f, err := handshaketest.JoinFrame(c, id); err == nil {
				if half {
					f = f[:len(f)/2]
				}
				_, _ = c.Write(f)
			}
		}
	}
	attempts := 2000
	if long() {
		attempts = 4000
	}
	for name, attack := range map[string]func(net.Conn, int){
		"connections": func(net.Conn, int) {},
		"joins":       join(pair, false),
		"half joins":  join(pair, true),
		"huge joins":  join(huge, false),
		"queues":      nil,
	} {
		t.Run(name, func(t *testing.T) {
			const memory = 64 // MiB
			b := New(t)
			status := freePort(t)
			f := b.StartForwarder("--metrics", "--status", status, "--memory", strconv.Itoa(memory))
			steady := joinPair(t, f.Addr, "steady")
			defer steady.close()
			before := resident(t, f.Cmd.Process.Pid)
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			var wait sync.WaitGroup
			defer wait.Wait()
			defer stop()

			// The running job, and beside it the time by which this machine delays any sleep.
			var pause, late atomic.Int64
			wait.Go(func() {
				for ctx.Err() == nil {
					raise(&pause, steady.ping(t))
					begin := time.Now()
					time.Sleep(2 * time.Millisecond)
					raise(&late, time.Since(begin)-2*time.Millisecond)
				}
			})

			begun := make(chan struct{}, 4*attempts)
			if attack == nil {
				floodQueues(ctx, &wait, f.Addr, begun)
			} else {
				for a := range 4 {
					wait.Go(func() {
						for i := 0; i < attempts && ctx.Err() == nil; i++ {
							if c, err := stranger(f.Addr); err == nil {
								defer c.Close()
								attack(c, a*attempts+i)
							}
							begun <- struct{}{}
						}
					})
				}
				for range attempts {
					<-begun
				}
			}
			slow := func() time.Duration { return 2 * time.Duration(late.Load()) }
			for i := range 3 {
				begin := time.Now()
				good := joinPair(t, f.Addr, fmt.Sprintf("good-%d", i))
				good.ping(t)
				if d := time.Since(begin); d > 2*time.Second+slow() {
					t.Errorf("a good job took %v to join", d)
				}
				good.close()
				for _, page := range []string{"status", "metrics"} {
					begin := time.Now()
					r, err := http.Get("http://" + status + "/" + page)
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(r.Body)
					r.Body.Close()
					if err != nil || r.StatusCode != http.StatusOK || len(body) == 0 {
						t.Errorf("%s: %v, %v", page, r.Status, err)
					}
					if d := time.Since(begin); d > 2*time.Second+slow() {
						t.Errorf("%s took %v", page, d)
					}
					var s forwarder.Status
					if page == "status" && (json.Unmarshal(body, &s) != nil || s.Memory.Used > s.Memory.Limit ||
						s.Memory.Limit != memory<<20) {
						t.Errorf("memory: %+v", s.Memory)
					}
				}
			}
			stop()
			wait.Wait()
			if d := time.Duration(pause.Load()); d > 500*time.Millisecond+slow() {
				t.Errorf("the running job paused for %v", d)
			}
			// Further memory is used by Go's heap before it is collected, and by the kernel's
			// buffers.
			if n := resident(t, f.Cmd.Process.Pid) - before; n > 2*memory<<20 {
				t.Errorf("the forwarder has grown by %d MiB, where it may keep %d", n>>20, memory)
			}
			if n := len(f.Stderr()); n > 1<<20 {
				t.Errorf("%d bytes of log", n)
			}
			t.Logf("longest pause %v, longest oversleep %v, %d MiB more, %d bytes of log", time.Duration(pause.Load()),
				time.Duration(late.Load()), (resident(t, f.Cmd.Process.Pid)-before)>>20, len(f.Stderr()))
		})
	}
}

func raise(most *atomic.Int64, d time.Duration) {
	if int64(d) > most.Load() {
		most.Store(int64(d)) // there is one writer
	}
}

// resident returns the peak memory of a process in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		if n, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(n)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

func floodIdentity(job string, rank int, layout []wire.Cluster) handshake.Identity {
	return handshake.Identity{Job: job, Secret: SecretOf("flood"), Cluster: layout[rank].Name, Layout: layout,
		TagUB:   1 << 28,
		Library: "lib", Host: "host", TimeoutMS: 60_000}
}

// stranger connects from an address that no legitimate job has.
func stranger(addr string) (net.Conn, error) { return connectFrom("127.0.0.2", addr) }

func connectFrom(from, addr string) (net.Conn, error) {
	return handshaketest.Connect(from, addr, 2*time.Minute)
}

// joined returns a rank's connection after its Layout.
func joined(from, addr string, id handshake.Identity) (net.Conn, error) {
	c, err := connectFrom(from, addr)
	if err != nil {
		return nil, err
	}
	f, err := handshaketest.JoinFrame(c, id)
	if err == nil {
		_, err = c.Write(f)
	}
	for err == nil {
		var h wire.Header
		var body []byte
		switch h, body, err = handshaketest.ReadFrame(c); {
		case err != nil:
		case h.Type == wire.TypeLayout:
			return c, nil
		case h.Type == wire.TypeRefuse:
			r, _ := wire.ParseRefuse(body)
			err = errors.New(r.Reason)
		}
	}
	c.Close()
	return nil, err
}

// pairOfRanks is a job of two ranks, without a program.
type pairOfRanks struct {
	ends [2]net.Conn
	seq  uint64
}

func joinPair(t *testing.T, addr, job string) *pairOfRanks {
	t.Helper()
	p := &pairOfRanks{}
	var errs [2]error
	var wait sync.WaitGroup
	for i := range p.ends {
		wait.Go(func() {
			p.ends[i], errs[i] = joined("127.0.0.1", addr, floodIdentity(job, i,
				[]wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}))
		})
	}
	wait.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return p
}

// ping sends a message there and one back, and returns the time.
func (p *pairOfRanks) ping(t *testing.T) time.Duration {
	begin := time.Now()
	p.seq++
	for from := range 2 {
		h := wire.Header{Type: wire.TypeEager, Epoch: 1, Length: wire.EnvelopeLen, Src: uint32(from),
			Dst: uint32(1 - from), Seq: p.seq}
		frame := (&wire.Envelope{}).Append(h.AppendUnsummed(nil))
		wire.SumFrame(frame)
		if _, err := p.ends[from].Write(frame); err != nil {
			t.Error(err)
			return 0
		}
		for {
			h, _, err := handshaketest.ReadFrame(p.ends[1-from])
			if err != nil {
				t.Error(err)
				return 0
			}
			if h.Type == wire.TypeEager {
				break
			}
		}
	}
	return time.Since(begin)
}

func (p *pairOfRanks) close() {
	for _, c := range p.ends {
		_, _ = c.Write(wire.AppendFrame(nil, wire.Control(wire.TypeBye), nil))
		c.Close()
	}
}

// floodQueues lets the ranks of a job send to each other without reading. It returns when none of
// them can send any more because the queues are full.
func floodQueues(ctx context.Context, wait *sync.WaitGroup, addr string, begun chan struct{}) {
	const half = 3
	layout := []wire.Cluster{{Name: "a", Size: half}, {Name: "b", Size: half}}
	full := make(chan struct{}, 2*half)
	for rank := range 2 * half {
		wait.Go(func() {
			id := floodIdentity("queues", rank/half, layout)
			id.Rank = rank % half
			c, err := joined("127.0.0.2", addr, id)
			begun <- struct{}{}
			isFull := sync.OnceFunc(func() { full <- struct{}{} })
			defer isFull()
			if err != nil {
				return
			}
			defer c.Close()
			h := wire.Header{Type: wire.TypeData, Epoch: 1, Length: wire.DataLen + 128<<10, Src: uint32(rank),
				Dst: uint32((rank + half) % (2 * half))}
			f := append((&wire.Data{}).Append(h.AppendUnsummed(nil)), make([]byte, 128<<10)...)
			wire.SumFrame(f)
			for off := 0; ctx.Err() == nil; {
				_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
				n, err := c.Write(f[off:])
				if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					return
				}
				if n == 0 {
					isFull()
				}
				off = (off + n) % len(f)
			}
		})
	}
	for range 2 * half {
		<-begun
	}
	for range 2 * half {
		<-full
	}
}

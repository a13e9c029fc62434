//go:build rdma && cgo

package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cgo/verbs"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/addr"
	"github.com/leidenzipper/zipper/internal/transport/transporttest"
)

// ways are the two ways to connect.
var ways = map[string]string{"tcp": "", "cm": "?connect=cm"}

func eachWay(t *testing.T, test func(t *testing.T, addr string)) {
	host := net.JoinHostPort(address(t), "0")
	for name, options := range ways {
		t.Run(name, func(t *testing.T) { test(t, host+options) })
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// liar announces another number than the one that it sends, like a port that is not the one that
// answered.
type liar struct{ control }

func (c liar) greet(l *link, me *hello) (hello, error) {
	other := *me
	other.nonce[0]++
	return c.control.greet(l, &other)
}

// TestFabricIdentity checks a peer that answers, but whose number does not arrive over the queue
// pair: the link is refused, with the reason.
func TestFabricIdentity(t *testing.T) {
	eachWay(t, func(t *testing.T, at string) {
		a := must[addr.Verbs](t)(addr.ParseVerbs(at))
		listen := listenTCP
		if a.CM {
			listen = listenCM
		}
		from := must[acceptor](t)(listen(a))
		defer from.close()
		a.Host = from.address()
		o := Options{Proof: 3 * time.Second}
		done := make(chan struct{})
		go func() {
			defer close(done)
			c, err := from.accept()
			if err != nil {
				return
			}
			if l, err := new(host).link(context.Background(), liar{c}, o.withDefaults()); err == nil {
				l.Close()
			}
		}()
		l, err := Dialer{o}.Dial(context.Background(), a.String())
		if err == nil {
			l.Close()
			t.Fatal("connected to a port that is not the one that answered")
		}
		var final interface{ Permanent() bool }
		if !strings.Contains(err.Error(), "fabric identity check") || !errors.As(err, &final) {
			t.Error(err)
		}
		<-done
	})
}

// TestPeerKilled checks that the link ends if the other process dies without closing, because its
// kernel closes the connection.
func TestPeerKilled(t *testing.T) {
	if to := os.Getenv("ZIPPER_VERBS_DIAL"); to != "" { // the child process
		l := must[transport.Link](t)(Dialer{}.Dial(context.Background(), to))
		if err := transporttest.WriteFull(l, []byte("here")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		return
	}
	eachWay(t, func(t *testing.T, addr string) {
		ln := must[*Listener](t)(Listen(addr, Options{}))
		defer ln.Close()
		cmd := exec.Command(self(t), "-test.run", "^TestPeerKilled$")
		cmd.Env = append(os.Environ(), "ZIPPER_VERBS_DIAL="+ln.Addr())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		l := must[transport.Link](t)(ln.Accept())
		defer l.Close()
		got := make([]byte, 4)
		if err := transporttest.ReadFull(l, got); err != nil || string(got) != "here" {
			t.Errorf("%q, %v", got, err)
		}
		cmd.Process.Kill()
		cmd.Wait()
		if err := transporttest.ReadFull(l, got[:1]); err != io.EOF {
			t.Errorf("got %v, want end of file", err)
		}
	})
}

// TestCutOff checks a peer whose adapter no longer answers, while the connection over which the
// link was made still exists: a reader gets an error after a call of Unheard.
func TestCutOff(t *testing.T) {
	eachWay(t, func(t *testing.T, addr string) {
		ln := must[*Listener](t)(Listen(addr, Options{}))
		defer ln.Close()
		a, b := connected(t, ln, Options{Timeout: 14, Retries: 6})
		if d, known := a.Unheard(); d != 0 || known || a.cause.Load() != nil {
			t.Errorf("ended: %v", a.cause.Load())
		}
		if err := b.in.qp.Fail(); err != nil { // it drops all packets that arrive
			t.Fatal(err)
		}
		if err := transporttest.WriteFull(a, []byte("is there anybody")); err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() { failed <- transporttest.ReadFull(a, make([]byte, 1)) }() // sleeps
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case err := <-failed:
				if !strings.Contains(err.Error(), "the peer does not answer any more") ||
					!errors.Is(err, verbs.RetryExceeded) {
					t.Error(err)
				}
				return
			case <-tick.C:
				a.Unheard()
			}
		}
	})
}

// TestConnectionsLeaveNothing checks that descriptors and goroutines of links, of failed dials and
// of listeners are freed.
func TestConnectionsLeaveNothing(t *testing.T) {
	eachWay(t, func(t *testing.T, addr string) {
		round := func() {
			ln := must[*Listener](t)(Listen(addr, Options{}))
			a, b := connected(t, ln, Options{})
			a.Close()
			b.Close()
			ln.Close()
			if l, err := (Dialer{}).Dial(context.Background(), ln.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
				if err == nil {
					l.Close()
				}
				t.Errorf("no listener: %v", err)
			}
		}
		round() // the first round opens what the libraries keep
		files, routines := settled(t, 0, 0)
		for range 5 {
			round()
		}
		if f, r := settled(t, files, routines); f > files || r > routines {
			t.Errorf("%d descriptors and %d goroutines became %d and %d", files, routines, f, r)
		}
	})
}

// settled returns the numbers of descriptors and goroutines once they are at most the given ones,
// or no longer change.
func settled(t *testing.T, files, routines int) (int, int) {
	count := func() (int, int) {
		return len(must[[]os.DirEntry](t)(os.ReadDir("/proc/self/fd"))), runtime.NumGoroutine()
	}
	f, r := count()
	for same := 0; same < 10 && (f > files || r > routines); same++ {
		time.Sleep(100 * time.Millisecond)
		if f2, r2 := count(); f2 != f || r2 != r {
			f, r, same = f2, r2, 0
		}
	}
	return f, r
}

// cmEnd is one end of a connection of the communication manager that violates the protocol.
type cmEnd struct {
	ch *verbs.CMChannel
	id *verbs.CM
}

func newCMEnd(t *testing.T) *cmEnd {
	c := &cmEnd{ch: must[*verbs.CMChannel](t)(verbs.NewCMChannel())}
	c.id = must[*verbs.CM](t)(c.ch.NewCM())
	t.Cleanup(func() {
		if err := c.id.Close(); err != nil {
			t.Error(err)
		}
		c.ch.Close()
	})
	return c
}

func (c *cmEnd) await(t *testing.T, want verbs.CMEventType) verbs.CMEvent {
	t.Helper()
	for end := time.Now().Add(transporttest.Patience); time.Now().Before(end); {
		e, got, err := c.ch.Event()
		if err != nil {
			t.Fatal(err)
		}
		if got {
			if e.Type != want {
				t.Fatalf("%v, status %d, %q; want %v", e.Type, e.Status, e.Data, want)
			}
			return e
		}
		unix.Poll([]unix.PollFd{{Fd: int32(c.ch.FD()), Events: unix.POLLIN}}, 1000)
	}
	t.Fatalf("no event; want %v", want)
	return verbs.CMEvent{}
}

// reach resolves the route to a listener.
func (c *cmEnd) reach(t *testing.T, ln *Listener) {
	t.Helper()
	to := netip.MustParseAddrPort(must[addr.Verbs](t)(addr.ParseVerbs(ln.Addr())).Host)
	if err := c.id.ResolveAddr(to, time.Second*10); err != nil {
		t.Fatal(err)
	}
	c.await(t, verbs.AddrResolved)
	if err := c.id.ResolveRoute(time.Second * 10); err != nil {
		t.Fatal(err)
	}
	c.await(t, verbs.RouteResolved)
}

// TestHostileRequests checks that a request which violates the protocol is rejected, with the
// reason, and that the next one is served.
func TestHostileRequests(t *testing.T) {
	ln := must[*Listener](t)(Listen(net.JoinHostPort(address(t), "0")+"?connect=cm", Options{}))
	defer ln.Close()
	h := example()
	good := h.private(h.in)
	many := bytes.Clone(good)
	many[6], many[7] = 0xff, 0xff
	for name, k := range map[string]struct{ data, reason string }{
		"empty answer":     {"", "not use the verbs transport"},
		"another protocol": {"GET / HTTP/1.1\r\n\r\n", "not use the verbs transport"},
		"version":          {string(good[:4]) + "\x63" + string(good[5:]), "same release"},
		"too many slots":   {string(many), "65535 buffers"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCMEnd(t)
			c.reach(t, ln)
			if err := c.id.Connect(7, []byte(k.data)); err != nil {
				t.Fatal(err)
			}
			e := c.await(t, verbs.Rejected)
			if err := parseReason(e.Data); e.Status != verbs.RejectByProgram ||
				!strings.Contains(err.Error(), k.reason) {
				t.Errorf("status %d, %v", e.Status, err)
			}
		})
	}
	t.Run("silent", func(t *testing.T) { // it never sends ready
		c := newCMEnd(t)
		c.reach(t, ln)
		if err := c.id.Connect(7, good); err != nil {
			t.Fatal(err)
		}
		c.await(t, verbs.ConnectResponse)
		connected(t, ln, Options{})
		begin := time.Now()
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > transporttest.Patience {
			t.Errorf("closing took %v", d)
		}
	})
}

// TestHostileAnswers checks that Dial fails with the reason if the answer violates the protocol.
func TestHostileAnswers(t *testing.T) {
	host := address(t)
	h := example()
	good := h.private(h.out)
	few := bytes.Clone(good)
	few[6], few[7] = 0, 0
	for name, k := range map[string]struct {
		answer func(*verbs.CM) error
		want   string
	}{
		"accepts with nothing": {func(m *verbs.CM) error { return m.Accept(7, nil) }, "not use the verbs transport"},
		"accepts no slots":     {func(m *verbs.CM) error { return m.Accept(7, few) }, "0 buffers"},
		"rejects with nothing": {func(m *verbs.CM) error { return m.Reject(nil) }, "not use the verbs transport"},
		"rejects with controls": {func(m *verbs.CM) error {
			return m.Reject(privateReason(errors.New("no\x1b[31m" + strings.Repeat("o", 1000))))
		}, "no?[31mooo"},
		"rejects with a length": {func(m *verbs.CM) error { return m.Reject(append(magic[:], version, 255)) },
			"255 bytes"},
		"is silent": {func(*verbs.CM) error { return nil }, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCMEnd(t)
			if err := errors.Join(c.id.Bind(netip.AddrPortFrom(netip.MustParseAddr(host), 0)),
				c.id.Listen(1)); err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				l, err := Dialer{Options{Proof: 5 * time.Second}}.Dial(context.Background(),
					fmt.Sprintf("%v?connect=cm", c.id.Local()))
				if err == nil {
					l.Close()
				}
				failed <- err
			}()
			e := c.await(t, verbs.ConnectRequest)
			defer e.New.Close()
			if err := k.answer(e.New); err != nil {
				t.Fatal(err)
			}
			if err := <-failed; err == nil || !strings.Contains(err.Error(), k.want) {
				t.Errorf("got %v, want %s", err, k.want)
			}
		})
	}
}

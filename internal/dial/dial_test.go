package dial

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/forwardertest"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/transport/shm"
	"github.com/leidenzipper/zipper/internal/transport/tcp"
	"github.com/leidenzipper/zipper/internal/wire"
)

const patience = 20 * time.Second

func identity(timeout time.Duration, layout ...wire.Cluster) handshake.Identity {
	return handshake.Identity{Job: "j", Secret: "s", Cluster: layout[0].Name, Layout: layout,
		TimeoutMS: timeout.Milliseconds(), Host: "h"}
}

var alone = wire.Cluster{Name: "a", Size: 1}

// serve runs a forwarder on a listener until the test ends.
func serve(t *testing.T, ln transport.Listener) {
	t.Helper()
	forwardertest.Serve(t, forwarder.Config{Listeners: []transport.Listener{ln}, Loops: 1,
		Linger: 100 * time.Millisecond})
}

func TestAddresses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zip")
	tl, err := tcp.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sl, err := shm.Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, tl)
	serve(t, sl)
	for _, addr := range []string{tl.Addr(), "unix:" + path} {
		l, layout, err := new(Dialer).Dial(context.Background(), addr, identity(patience, alone))
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		if layout.Ranks() != 1 || layout.Namesake {
			t.Errorf("%s: %+v", addr, layout)
		}
		l.Close()
	}
}

// TestDialWaitsForForwarder checks that the pieces of a job may start in any order.
func TestDialWaitsForForwarder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zip")
	notified := make(chan string, 2)
	joined := make(chan error, 1)
	go func() {
		d := Dialer{Patience: 50 * time.Millisecond, Notify: func(what string) { notified <- what }}
		l, _, err := d.Dial(context.Background(), "unix:"+path, identity(patience, alone))
		if err == nil {
			l.Close()
		}
		joined <- err
	}()
	if what := <-notified; !strings.Contains(what, path+" is not reached yet: ") {
		t.Errorf("notified %q", what)
	}
	ln, err := shm.Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, ln)
	if err := <-joined; err != nil {
		t.Error(err)
	}
}

// absent is a transport whose address cannot be reached.
type absent struct{}

func (absent) Dial(context.Context, string) (transport.Link, error) { return nil, syscall.ENOENT }

// TestUnreachableForwarderIsReported checks that a forwarder which is not reached is named after a
// while, with the reason.
func TestUnreachableForwarderIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notified := make(chan string, 1) // a separate goroutine sends the notification
		begin := time.Now()
		d := Dialer{Transport: absent{}, Notify: func(what string) { notified <- what }}
		_, _, err := d.Dial(t.Context(), "zip", identity(patience, alone))
		if !errors.Is(err, syscall.ENOENT) || time.Since(begin) != patience {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		want := "forwarder zip is not reached yet: " + syscall.ENOENT.Error() + "; trying for 20s in all"
		if got := <-notified; got != want {
			t.Errorf("notified %q, want %q", got, want)
		}
	})
}

// TestWaitingIsReported checks that a rank which waits for others gets the list of missing ranks
// from the forwarder: after a while, and soon after a rank was refused.
func TestWaitingIsReported(t *testing.T) {
	for _, c := range []struct {
		patience time.Duration
		stranger bool
		want     string
	}{
		{10 * time.Millisecond, false, `: job "j" is not complete yet; missing: cluster b (1 rank)`},
		{time.Hour, true, `: job "j" is not complete yet; missing: cluster b (1 rank); refused: 1 rank of cluster "a" (rank taken)`},
	} {
		f, addr := forwardertest.Serve(t, forwarder.Config{Loops: 1, Linger: 100 * time.Millisecond,
			Patience: c.patience})
		ctx, cancel := context.WithCancel(t.Context())
		notified, ended := make(chan string, 1), make(chan error)
		go func() {
			d := Dialer{Notify: func(what string) {
				notified <- what
				cancel()
			}}
			_, _, err := d.Dial(ctx, addr, identity(patience, alone, wire.Cluster{Name: "b", Size: 1}))
			ended <- err
		}()
		if c.stranger {
			for len(f.Status().Jobs) == 0 {
				time.Sleep(time.Millisecond)
			}
			id := identity(patience, alone, wire.Cluster{Name: "b", Size: 1})
			if _, _, err := new(Dialer).Dial(t.Context(), addr, id); err == nil {
				t.Error("the same rank is taken twice")
			}
		}
		if what := <-notified; !strings.HasSuffix(what, c.want) {
			t.Errorf("notified %q, want %q", what, c.want)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

// TestDescriptorsRunOut checks that a process at its limit of descriptors retries, for any
// descriptor that it lacks.
func TestDescriptorsRunOut(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	for spare := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 3*fullPause)
		free := takeDescriptors(t, spare)
		_, _, err = new(Dialer).Dial(ctx, "localhost:"+port, identity(patience, alone)) // a name is looked up in a file
		free()
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d descriptors left: %v", spare, err)
		}
	}
}

// takeDescriptors opens all of the process's descriptors except spare ones, until free is called.
func takeDescriptors(t *testing.T, spare int) (free func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few := was
	few.Cur = min(was.Cur, 256)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var taken []int
	for fd, err := unix.Dup(0); err == nil; fd, err = unix.Dup(0) {
		taken = append(taken, fd)
	}
	for range spare {
		unix.Close(taken[len(taken)-1])
		taken = taken[:len(taken)-1]
	}
	return func() {
		for _, fd := range taken {
			unix.Close(fd)
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}
}

// greedy opens links. At the first one it opens all descriptors for a while.
type greedy struct {
	t     *testing.T
	dials int
}

func (g *greedy) Dial(context.Context, string) (transport.Link, error) {
	if g.dials++; g.dials == 1 {
		time.AfterFunc(fullPause/2, takeDescriptors(g.t, 0))
	}
	near, _ := memnet.Pipe(memnet.Options{})
	return near, nil
}

// TestDescriptorsTaken checks that other code of the process may open the last descriptors once the
// link is connected.
func TestDescriptorsTaken(t *testing.T) {
	g := &greedy{t: t}
	ctx, cancel := context.WithTimeout(t.Context(), 3*fullPause)
	defer cancel()
	if _, _, err := (&Dialer{Transport: g}).Dial(ctx, "x", identity(patience, alone)); !errors.Is(err,
		context.DeadlineExceeded) || g.dials < 2 {
		t.Errorf("%d attempts: %v", g.dials, err)
	}
}

// dead returns an address without a listener.
func dead(t *testing.T) string {
	ln, err := tcp.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr()
}

// silent is a network on which nothing answers.
type silent struct{}

func (silent) Dial(ctx context.Context, _ string) (transport.Link, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
}

// TestErrorNamesReasonsForSilence checks that the error names other reasons for a time-out than for
// a refusal.
func TestErrorNamesReasonsForSilence(t *testing.T) {
	id := identity(100*time.Millisecond, alone)
	_, _, silence := (&Dialer{Transport: silent{}}).Dial(t.Context(), "x", id)
	_, _, refusal := new(Dialer).Dial(t.Context(), dead(t), id)
	const advice = "is the node's table of connections full?"
	if silence == nil || !strings.Contains(silence.Error(), advice) {
		t.Errorf("time-out: %v", silence)
	}
	if refusal == nil || strings.Contains(refusal.Error(), advice) {
		t.Errorf("refusal: %v", refusal)
	}
}

func TestNotReachable(t *testing.T) {
	addr := dead(t)
	began := time.Now()
	_, _, err := new(Dialer).Dial(context.Background(), addr, identity(200*time.Millisecond, alone))
	if err == nil || !strings.Contains(err.Error(), "forwarder "+addr) ||
		!strings.Contains(err.Error(), "not reachable within 200ms") {
		t.Errorf("got %v", err)
	}
	if d := time.Since(began); d < 200*time.Millisecond {
		t.Errorf("given up after %v", d)
	}
	if _, _, err := new(Dialer).Dial(context.Background(), "no-port", identity(patience, alone)); err == nil {
		t.Error("an address without port is taken")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := new(Dialer).Dial(ctx, addr, identity(patience, alone)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestNotAForwarder checks listeners that answer with something else, close the connection, or send
// nothing.
func TestNotAForwarder(t *testing.T) {
	question := wire.Challenge{Version: wire.Version, LinkKey: [wire.SealKeyLen]byte{9}}
	challenge := wire.AppendFrame(nil, wire.Header{Type: wire.TypeChallenge, Dst: wire.Nobody, Src: wire.Nobody},
		&question)
	for name, c := range map[string]struct {
		talk func(net.Conn)
		want string
	}{
		"web server": {func(c net.Conn) { c.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")) },
			"not as a forwarder does"},
		"hangs up": {func(net.Conn) {}, "closed the connection during the join"},
		"wrong frame": {func(c net.Conn) {
			c.Write(wire.AppendFrame(nil, wire.Header{Type: wire.TypePong}, nil))
			c.Read(make([]byte, 1000))
		}, "is that a Zipper forwarder?"},
		"silent": {func(c net.Conn) { c.Read(make([]byte, 1)) }, "has sent nothing for 200ms"},
		"silent after the Join": {func(c net.Conn) { c.Write(challenge); io.Copy(io.Discard, c) },
			"has sent nothing for 200ms"},
		"silent within a header": {func(c net.Conn) { c.Write(challenge[:7]); io.Copy(io.Discard, c) },
			"has sent nothing for 200ms"},
		"silent within a frame": {func(c net.Conn) { c.Write(challenge[:len(challenge)-1]); io.Copy(io.Discard, c) },
			"has sent nothing for 100ms"},
		"cancelled": {func(c net.Conn) { c.Read(make([]byte, 1)) }, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() {
				conn, err := ln.Accept()
				if err == nil {
					c.talk(conn)
					conn.Close()
				}
			}()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			d := &Dialer{Silence: patience}
			switch {
			case name == "cancelled":
				cancel()
				ctx, cancel = context.WithTimeout(context.Background(), 200*time.Millisecond)
				d.Silence = 0
			case strings.HasPrefix(name, "silent"):
				d.Silence = 200 * time.Millisecond
			}
			if name == "silent within a frame" {
				d.Limit, d.Silence = 100*time.Millisecond, patience // a link that is reconnected
			}
			defer cancel()
			_, _, err = d.Dial(ctx, ln.Addr().String(), identity(patience, alone))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

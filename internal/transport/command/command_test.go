package command

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/transporttest"
)

// relayTo is the environment variable with a socket's name. With it this program is a command that
// copies its input to the socket, and the bytes from the socket to its output.
const relayTo = "RELAY_TO"

func TestMain(m *testing.M) {
	at := os.Getenv(relayTo)
	if at == "" {
		os.Exit(m.Run())
	}
	c, err := net.Dial("unix", at)
	if err != nil {
		println("relay:", err.Error())
		os.Exit(3)
	}
	go func() {
		_, _ = io.Copy(c, os.Stdin)
		_ = c.(*net.UnixConn).CloseWrite()
	}()
	_, _ = io.Copy(os.Stdout, c)
	os.Exit(0)
}

// greeting is the first message, from the end that did not dial.
const greeting = "!"

// greeter is the other end of relays.
type greeter struct{ *net.UnixListener }

func (g greeter) Accept() (transport.Link, error) {
	c, err := g.AcceptUnix()
	if errors.Is(err, net.ErrClosed) {
		return nil, transport.ErrClosed
	}
	if err != nil {
		return nil, err
	}
	f, err := c.File()
	if err := errors.Join(err, c.Close()); err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err := errors.Join(err, f.Close(), unix.SetNonblock(fd, true)); err != nil {
		return nil, err
	}
	l := newLink(fd, "relay")
	return l, transporttest.WriteFull(l, []byte(greeting))
}

func (g greeter) Addr() string { return g.UnixListener.Addr().String() }

// greeted dials relays.
type greeted struct{ Dialer }

func (d greeted) Dial(ctx context.Context, at string) (transport.Link, error) {
	l, err := d.Dialer.Dial(ctx, relay(at))
	if err != nil {
		return nil, err
	}
	return l, transporttest.ReadFull(l, make([]byte, len(greeting)))
}

// relay returns the command that connects to a socket.
func relay(at string) string { return "env " + relayTo + "=" + at + " " + os.Args[0] }

func TestConformance(t *testing.T) {
	transporttest.Run(t, transporttest.Setup{Can: transporttest.Carried,
		Allocates: "lists of buffers, which nobody minds beside what ssh does",
		Open: func(t *testing.T) (transport.Listener, transport.Dialer) {
			ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			return greeter{ln}, greeted{}
		}})
}

// TestFailure checks that the command's messages are in the error, and passed to Tell.
func TestFailure(t *testing.T) {
	for line, want := range map[string]string{
		"sh -c 'echo one >&2; echo no route >&2; exit 255'": "no route (exit status 255)",
		"sh -c 'printf unfinished >&2'":                     "exit status 0",
		"/nonexistent/ssh":                                  "not found (exit status 127)",
	} {
		lines := make(chan string, 3)
		_, err := Dialer{Tell: func(line string) { lines <- line }}.Dial(t.Context(), line)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
		if strings.Contains(line, "route") && (<-lines != "one" || <-lines != "no route") {
			t.Errorf("%s: Tell did not get the lines", line)
		}
	}
}

// TestSilentCommandIsKilled checks that a command which runs and sends nothing fails in time, and
// is killed.
func TestSilentCommandIsKilled(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithTimeout(t.Context(), transporttest.Patience)
	defer cancel()
	go func() { // its time ends while it runs
		for ctx.Err() == nil {
			if b, _ := os.ReadFile(pid); strings.HasSuffix(string(b), "\n") {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := Dialer{}.Dial(ctx, "sh -c 'echo $$ > "+pid+"; sleep 1000'")
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for end := time.Now().Add(lingers + transporttest.Patience); ; time.Sleep(looks) {
		b, err := os.ReadFile(pid)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat("/proc/" + strings.TrimSpace(string(b))); errors.Is(err, os.ErrNotExist) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the command still runs")
		}
	}
}

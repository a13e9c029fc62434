package jobcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/monitor"
)

// Drain returns the command zipper drain.
func Drain() *cli.Command {
	return &cli.Command{
		Name:      "drain",
		Usage:     "make the forwarder on this host refuse new jobs, and end after its last job",
		ArgsUsage: "[HOST[:PORT]]",
		Description: `zipper drain                   before maintenance; asks the forwarder of this host, by SIGUSR1
zipper drain --wait            and returns when it has ended

Jobs that run or gather continue. HOST:PORT is the forwarder's status address on this host.`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "wait", Usage: "return when the forwarder has ended"}},
		Action: func(c *cli.Context) error {
			at, s, err := signalForwarder(c, syscall.SIGUSR1)
			if err != nil {
				return err
			}
			fmt.Printf("the forwarder takes no new jobs; it has %d\n", s.MoreJobs)
			if !c.Bool("wait") {
				return nil
			}
			return awaitEnd(c.Context, at, s.PID)
		},
	}
}

// Stop returns the command zipper stop.
func Stop() *cli.Command {
	return &cli.Command{
		Name:      "stop",
		Usage:     "end the forwarder on this host, and its jobs at once",
		ArgsUsage: "[HOST[:PORT]]",
		Description: `zipper stop                    ends the forwarder of this host, by SIGINT

Its jobs end with an error that says so, except jobs that have another forwarder, which continue there. To restart
a forwarder and keep its jobs, use systemctl restart, or SIGTERM and a new start; zipper drain lets them finish.
HOST:PORT is the forwarder's status address on this host.`,
		Action: func(c *cli.Context) error {
			at, s, err := signalForwarder(c, syscall.SIGINT)
			if err != nil {
				return err
			}
			err = awaitEnd(c.Context, at, s.PID)
			if err == nil {
				fmt.Println("the forwarder has ended")
			}
			return err
		},
	}
}

// Reload returns the command zipper reload.
func Reload() *cli.Command {
	return &cli.Command{
		Name:      "reload",
		Usage:     "make the forwarder on this host read its configuration file again",
		ArgsUsage: "[HOST[:PORT]]",
		Description: `The new settings apply to jobs that begin from now on. The forwarder's log lists changed options that take effect
only at the next start. The forwarder must have been started with --config.`,
		Action: func(c *cli.Context) error {
			_, s, err := signalForwarder(c, 0)
			if err == nil && s.Config == "" {
				err = errors.New("that forwarder was started without --config: it has no file to read again")
			}
			if err == nil {
				_, _, err = signalForwarder(c, syscall.SIGHUP)
			}
			if err == nil {
				fmt.Printf("%s is read again; the result is in the forwarder's log\n", s.Config)
			}
			return err
		},
	}
}

// signalForwarder sends a signal, or none if it is 0, to the forwarder of this host that shows its
// status at the address in the command's argument. It returns that address and the status.
func signalForwarder(c *cli.Context, sig syscall.Signal) (at string, s forwarder.Status, err error) {
	if c.NArg() > 1 {
		return at, s, clikit.Usage(fmt.Errorf("unexpected argument %q", c.Args().Get(1)))
	}
	at = statusAddress(c.Args().First())
	ctx, cancel := context.WithTimeout(c.Context, answerTime)
	defer cancel()
	if s, err = monitor.FetchBrief(ctx, at); err != nil {
		return at, s, err
	}
	if !here(at) {
		return at, s, fmt.Errorf("%s is not an address of this host: run the command there (ssh HOST zipper %s)", at,
			c.Command.Name)
	}
	// Another program that answers there could report any number.
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.PID))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(words) == 0 {
		// The forwarder may have ended since it answered. The error is then as if it had ended
		// before.
		if _, err := monitor.FetchBrief(ctx, at); err != nil {
			return at, s, err
		}
	}
	holds := false
	if err == nil {
		holds, err = holdsListener(s.PID, at)
	}
	if err != nil || s.PID <= 1 || !holds || !bytes.Contains(words, []byte("\x00forwarder\x00")) {
		return at, s, fmt.Errorf("the program that shows its status at %s reports process %d, "+
			"which is not a zipper forwarder on this host (does it run in a container?)", at, s.PID)
	}
	if err := syscall.Kill(s.PID, sig); err != nil {
		return at, s, fmt.Errorf("process %d: %w (the forwarder's user and root may do this)", s.PID, err)
	}
	return at, s, nil
}

// statusAddress completes the address where a forwarder shows its status.
func statusAddress(addr string) string {
	if addr == "" {
		addr = "127.0.0.1"
	}
	if !strings.Contains(addr, ":") {
		addr = net.JoinHostPort(addr, strconv.Itoa(monitor.DefaultPort))
	}
	return addr
}

// here tells whether "host:port" is an address of this host.
func here(at string) bool {
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return false
	}
	ips, err := net.LookupHost(host)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, ip := range ips {
		a, err := netip.ParseAddr(ip)
		if err == nil && a.IsLoopback() {
			return true
		}
		for _, o := range own {
			if p, err2 := netip.ParsePrefix(o.String()); err == nil && err2 == nil && p.Addr() == a {
				return true
			}
		}
	}
	return false
}

// againAfter is the time between two checks whether a forwarder still runs.
const againAfter = 200 * time.Millisecond

// awaitEnd waits until the forwarder of that process no longer shows its status.
func awaitEnd(ctx context.Context, at string, pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer func() { _ = p.Release() }() // nothing has waited for it
	for {
		asked, cancel := context.WithTimeout(ctx, answerTime)
		s, err := monitor.FetchBrief(asked, at)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if dead := errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone); dead || err == nil && s.PID != pid {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(againAfter):
		}
	}
}

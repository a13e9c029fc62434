//go:build linux

// Command zipper-delayline is a long link between two network namespaces of one Linux machine. It
// makes a TAP device in each and carries Ethernet frames between them by package delayline, until a
// signal ends it (SIGINT, SIGTERM) or its owner has ended; then the devices are gone, too.
//
//	zipper-delayline [options] [NETNS:]DEVICE [NETNS:]DEVICE
//	zipper-delayline tell SOCKET stats | reset | set NAME=VALUE... | cut TIME
//
// Namespaces are those of ip netns; a device without one is in the present namespace. Give the
// devices addresses, or a place in a bridge. "ready" on standard output means that they exist.
// SIGUSR1 prints the statistics. The command needs CAP_NET_ADMIN and CAP_SYS_ADMIN, and takes
// real-time priority if it may.
//
// At 1 Gbit/s and an MTU of 1500 a TCP stream carries 941 Mbit/s.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/bench/lab/delayline"
)

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == "tell" {
		err = tell(os.Args[2:])
	} else if err = realTime(); err == nil {
		runtime.GOMAXPROCS(4) // two for the carriers, which keep them
		err = run(os.Args[1:])
	}
	var wrong usageError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintln(os.Stderr, "zipper-delayline:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "zipper-delayline:", err)
		os.Exit(1)
	}
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func run(args []string) error {
	o := delayline.Defaults()
	flags := flag.NewFlagSet("zipper-delayline", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	about := map[string]string{
		"delay": "one way, such as `20ms`", "rate": "of the line, such as `1gbit`; off: no limit",
		"queue": "`bytes` that wait for the line at most, such as 2MB (default: a round trip's, at least 1MB)",
		"loss":  "`share` of the packets, such as 0.01%", "mtu": "`bytes` of an IP packet",
		"blackhole": "IP packets of more `bytes` vanish", "seed": "of the losses, a `number`",
	}
	var wrong error // a clearer error than that of package flag
	for _, name := range delayline.Names() {
		flags.Func(name, about[name], func(value string) error {
			wrong = o.Set(name, value)
			return wrong
		})
	}
	control := flags.String("control", "", "`path` of a socket for zipper-delayline tell")
	check := flags.Bool("check", false, "only check the options")
	owner := flags.String("owner", strconv.Itoa(os.Getppid()), "id of a `process` whose end ends the line, too, or none")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(os.Stdout)
		fmt.Println("usage: zipper-delayline [options] [NETNS:]DEVICE [NETNS:]DEVICE")
		flags.PrintDefaults()
		return nil
	case wrong != nil:
		return usageError{wrong}
	case err != nil:
		return usageError{err}
	case *check && flags.NArg() == 0:
		if err := o.Check(); err != nil {
			return usageError{err}
		}
		return nil
	case flags.NArg() != 2:
		return usageError{errors.New("want two devices: [NETNS:]DEVICE [NETNS:]DEVICE")}
	case flags.Arg(0) == flags.Arg(1):
		return usageError{fmt.Errorf("%s is one device, want two", flags.Arg(0))}
	}
	if err := o.Check(); err != nil {
		return usageError{err}
	}
	gone, err := watch(*owner)
	if err != nil {
		return usageError{err}
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	show := make(chan os.Signal, 1)
	signal.Notify(show, syscall.SIGUSR1)

	l, err := open(o, flags.Arg(0), flags.Arg(1))
	if err != nil {
		return err
	}
	if *control != "" {
		listener, err := net.Listen("unix", *control)
		if err != nil {
			return err
		}
		defer listener.Close() // which also removes the socket's name
		go l.serve(listener)
	}
	failed := l.start()
	fmt.Fprintf(os.Stderr, "zipper-delayline: %s - %s: %v\n", flags.Arg(0), flags.Arg(1), o)
	fmt.Println("ready")
	for {
		select {
		case <-show:
			l.print()
			continue
		case <-end:
		case <-gone:
		case err := <-failed:
			return err
		}
		l.print()
		return nil
	}
}

// watch returns a channel that is closed when the process has ended.
func watch(owner string) (<-chan struct{}, error) {
	if owner == "none" {
		return nil, nil
	}
	pid, err := strconv.Atoi(owner)
	if err != nil || pid < 1 {
		return nil, fmt.Errorf("owner %s: want the id of a process, or none", owner)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("owner %d: %w", pid, err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return gone, nil
}

// tell sends a command to the control socket.
func tell(args []string) error {
	if len(args) < 2 {
		return usageError{errors.New("want tell SOCKET stats | reset | set NAME=VALUE... | cut TIME")}
	}
	c, err := net.Dial("unix", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprintln(c, strings.Join(args[1:], " ")); err != nil {
		return err
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		return err
	}
	if wrong, failed := strings.CutPrefix(string(answer), "error: "); failed {
		return errors.New(strings.TrimSpace(wrong))
	}
	_, err = os.Stdout.Write(answer)
	return err
}

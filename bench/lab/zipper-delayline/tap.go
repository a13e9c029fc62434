//go:build linux

package main

import (
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// queueLength is the number of frames that wait for this program in the device, so that only the
// line's queue drops packets.
const queueLength = 20000

// tap makes a TAP device, [NETNS:]NAME, that passes on several packets of a TCP connection in one
// frame, and leaves checksums to others. Its file does not block.
func tap(where string, mtu int) (fd int, err error) {
	space, name, ok := strings.Cut(where, ":")
	if !ok {
		space, name = "", where
	}
	if ok && space == "" || name == "" || strings.ContainsAny(where, "/ ") {
		return -1, fmt.Errorf("%s: want NETNS:DEVICE or DEVICE", where)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", where, err)
		}
	}()
	if space != "" {
		runtime.LockOSThread() // a namespace is one of a thread
		defer runtime.UnlockOSThread()
		back, err := enter(space)
		if err != nil {
			return -1, err
		}
		defer back()
	}
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("/dev/net/tun: %w", err)
	}
	if err := configure(fd, name, mtu); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// enter moves this thread to a namespace of ip netns; back returns to the earlier one.
func enter(space string) (back func(), err error) {
	home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	there, err := unix.Open("/run/netns/"+space, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(home)
		return nil, fmt.Errorf("there is no network namespace %s (ip netns add): %w", space, err)
	}
	defer unix.Close(there)
	if err := unix.Setns(there, unix.CLONE_NEWNET); err != nil {
		unix.Close(home)
		return nil, fmt.Errorf("setns: %w", err)
	}
	return func() {
		if err := unix.Setns(home, unix.CLONE_NEWNET); err != nil {
			panic(err) // the file is the namespace that the thread has just left
		}
		unix.Close(home)
	}, nil
}

func configure(fd int, name string, mtu int) error {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("a TAP device: %w", err)
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6); err != nil {
		return fmt.Errorf("segmentation offload: %w", err)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	for _, set := range []struct {
		what    string
		request uint
		value   uint32
	}{{"mtu", unix.SIOCSIFMTU, uint32(mtu)}, {"length of the queue", unix.SIOCSIFTXQLEN, queueLength}} {
		request.SetUint32(set.value)
		if err := unix.IoctlIfreq(s, set.request, request); err != nil {
			return fmt.Errorf("%s: %w", set.what, err)
		}
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	request.SetUint16(request.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, request)
}

//go:build linux

package main

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// realTime starts the program again, with real-time priority for all its threads. It returns in the
// program so started, or if that is not permitted; the lateness shows the effect. All threads need
// the priority, because Go moves a goroutine's right to run from one to another. On a busy machine
// a thread that waits for the kernel's turn would hold that right for tens of milliseconds.
func realTime() error {
	runtime.LockOSThread() // a thread has the policy, and the threads that it makes inherit it
	defer runtime.UnlockOSThread()
	switch now, err := unix.SchedGetAttr(0, 0); {
	case err != nil:
		return err
	case now.Policy == unix.SCHED_FIFO:
		return nil
	}
	want := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if unix.SchedSetAttr(0, &want, 0) != nil {
		return nil // it is not permitted
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, os.Environ())
}

// The calls of a carrier's thread are not announced to Go's scheduler, because it would take away
// the right to run in each, and the thread would have to get it back.

func read(fd int, b []byte) (n int, errno unix.Errno) {
	r, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(r), errno
}

// write writes a frame in two parts, of which the second may be empty.
func write(fd int, head, payload []byte) unix.Errno {
	if len(payload) == 0 {
		_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&head[0])),
			uintptr(len(head)))
		return errno
	}
	parts := [2]unix.Iovec{{Base: &head[0]}, {Base: &payload[0]}}
	parts[0].SetLen(len(head))
	parts[1].SetLen(len(payload))
	_, _, errno := unix.RawSyscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&parts)), 2)
	return errno
}

// poll waits until fd can be read or so many nanoseconds have passed.
func poll(fd int, ns int64) unix.Errno {
	f := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	timeout := unix.NsecToTimespec(ns)
	_, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&f)), 1, uintptr(unsafe.Pointer(&timeout)),
		0, 0, 0)
	return errno
}

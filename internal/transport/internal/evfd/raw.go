package evfd

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawRead and rawWrite are raw system calls, because they do not block. Their errors do not matter:
// EAGAIN means that the FD already has the wanted state.

func rawRead(fd int, b *[8]byte) {
	_, _, _ = unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(b)), 8)
}

func rawWrite(fd int, b *[8]byte) {
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(b)), 8)
}

package launch

import (
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalName returns a signal's name as users type it: SIGTERM.
func SignalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return "signal " + strconv.Itoa(int(s))
}

// DescribeStatus explains an exit status: "exit status 139 (SIGSEGV)".
func DescribeStatus(status int) string {
	if status > 128 {
		if n := unix.SignalName(syscall.Signal(status - 128)); n != "" {
			return fmt.Sprintf("exit status %d (%s)", status, n)
		}
	}
	return fmt.Sprintf("exit status %d", status)
}

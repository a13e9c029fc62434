package jobcmd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// holdsListener tells whether a process has a socket open that listens for TCP at the port of
// "host:port" on this host. It also returns true for a process whose descriptors this user may not
// read: the kernel lets the user signal only processes of the user's own.
func holdsListener(pid int, at string) (bool, error) {
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		return false, err
	}
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		return false, err
	}
	var sockets []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // without IPv6 there is no table
			return false, err
		}
		sockets = append(sockets, listening(string(text), number)...)
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return errors.Is(err, os.ErrPermission), nil
	}
	for _, f := range files {
		target, err := os.Readlink(filepath.Join(dir, f.Name()))
		if err == nil && slices.Contains(sockets, target) {
			return true, nil
		}
	}
	return false, nil
}

// listening returns the sockets that listen at a port, as links of /proc/PID/fd name them, from a
// table of the kernel (proc_net_tcp in the kernel's documentation).
func listening(table string, port int) (sockets []string) {
	const address, state, inode, listen = 1, 3, 9, "0A"
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) > inode && words[state] == listen && strings.HasSuffix(words[address], fmt.Sprintf(":%04X", port)) {
			sockets = append(sockets, "socket:["+words[inode]+"]")
		}
	}
	return sockets
}

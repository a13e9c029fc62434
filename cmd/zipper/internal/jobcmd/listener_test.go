package jobcmd

import (
	"net"
	"os"
	"os/exec"
	"testing"
)

// TestListenerIsHeldByItsProcess checks that a process that listens at an address is distinguished
// from another one, over IPv4 and, where the host has it, IPv6.
func TestListenerIsHeldByItsProcess(t *testing.T) {
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait() // killed
	})
	for _, host := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		ln, err := net.Listen("tcp", host)
		if err != nil && host == "[::1]:0" {
			t.Logf("no IPv6: %v", err)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		at := ln.Addr().String()
		for pid, want := range map[int]bool{os.Getpid(): true, other.Process.Pid: false} {
			if got, err := holdsListener(pid, at); got != want || err != nil {
				t.Errorf("%s, process %d: %v, %v; want %v", at, pid, got, err, want)
			}
		}
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := holdsListener(os.Getpid(), at); got || err != nil {
			t.Errorf("%s, closed: %v, %v", at, got, err)
		}
	}
}

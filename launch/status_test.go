package launch

import (
	"syscall"
	"testing"
)

func TestDescribeStatus(t *testing.T) {
	for status, want := range map[int]string{3: "exit status 3", 139: "exit status 139 (SIGSEGV)",
		255: "exit status 255"} {
		if got := DescribeStatus(status); got != want {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
	}
	if got := SignalName(syscall.SIGTERM); got != "SIGTERM" {
		t.Errorf("got %q", got)
	}
}

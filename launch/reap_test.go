package launch

import (
	"os"
	"strings"
	"testing"
)

// TestProcessInExecIsRecognized distinguishes a process without an environment yet from those that
// never have one.
func TestProcessInExecIsRecognized(t *testing.T) {
	stat := func(state, flags, envEnd string) []byte {
		fields := strings.Fields(strings.Repeat("1 ", 52))
		fields[0], fields[1], fields[2], fields[8], fields[50] = "77", "(a ) b)", state, flags, envEnd
		return []byte(strings.Join(fields, " ") + "\n")
	}
	for name, tc := range map[string]struct {
		stat []byte
		want bool
	}{
		"in execve":         {stat("R", "4194304", "0"), true},
		"running":           {stat("R", "4194304", "140722368921576"), false},
		"zombie":            {stat("Z", "4194304", "0"), false},
		"exiting":           {stat("R", "4194308", "0"), false},
		"thread of kernel":  {stat("S", "2129984", "0"), false},
		"cut short":         {[]byte("77 (a) R 1 2"), false},
		"nothing":           {nil, false},
		"no command's name": {[]byte("77 a R 1 2"), false},
	} {
		if got := inExec(tc.stat); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil || inExec(self) {
		t.Errorf("this process is taken for one in execve: %q, %v", self, err)
	}
}

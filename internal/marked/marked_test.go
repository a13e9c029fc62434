package marked

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestProcessInExecIsRecognized distinguishes a process without an environment yet from those that
// never have one.
func TestProcessInExecIsRecognized(t *testing.T) {
	stat := func(state, flags, envStart, envEnd string) []byte {
		fields := strings.Fields(strings.Repeat("1 ", 52))
		fields[0], fields[1], fields[2], fields[8] = "77", "(a ) b)", state, flags
		fields[49], fields[50] = envStart, envEnd
		return []byte(strings.Join(fields, " ") + "\n")
	}
	const start, end = "140722368921500", "140722368921576"
	for name, tc := range map[string]struct {
		stat []byte
		want bool
	}{
		"in execve":            {stat("R", "4194304", "0", "0"), true},
		"execve ended since":   {stat("R", "4194304", start, end), true},
		"empty for good":       {stat("R", "4194304", end, end), false},
		"zombie":               {stat("Z", "4194304", "0", "0"), false},
		"exiting":              {stat("R", "4194308", "0", "0"), false},
		"thread of the kernel": {stat("S", "2129984", "0", "0"), false},
		"cut short":            {[]byte("77 (a) R 1 2"), false},
		"nothing":              {nil, false},
		"no command's name":    {[]byte("77 a R 1 2"), false},
	} {
		if got := inExec(tc.stat); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestProcessIsFoundDuringExec searches for a process from the moment at which it exists, so that
// some of the searches meet it in the midst of execve.
func TestProcessIsFoundDuringExec(t *testing.T) {
	const variable = "MARKED_TEST=during exec"
	for range 50 {
		cmd := exec.Command("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo; wait")
		cmd.Env = append(os.Environ(), variable)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the shell was killed
		if len(Processes(variable)) == 0 {
			t.Fatal("the process in a session of its own is not found")
		}
		Kill(variable)
		for end := time.Now().Add(10 * time.Second); len(Processes(variable)) > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the process lives 10 s after Kill")
			}
		}
	}
}

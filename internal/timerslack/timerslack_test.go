package timerslack

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/optional"
)

// TestStart checks that in a program that Start has started again only the runtime's monitor, and
// the thread that starts others in programs with cgo, have the long slack. On a busy machine the
// monitor makes a thread at any time: in about one of a thousand programs at the start, and for the
// work.
func TestStart(t *testing.T) {
	if os.Getenv("CALM_TEST") != "" {
		restarted(t)
		return
	}
	if !mayReadSlack() {
		t.Skip("reading other threads' timer slack takes CAP_SYS_NICE")
	}
	optional.Processor(t, "processes without a thread of the emulator")
	// Many programs run at a time, because more threads are needed on a busy machine.
	var programs sync.WaitGroup
	var more atomic.Int32
	for range 8 {
		programs.Go(func() {
			for range 10 {
				cmd := exec.Command(os.Args[0], "-test.run=^TestStart$", "-test.v")
				cmd.Env = append(os.Environ(), "CALM_TEST=1", "GOMAXPROCS=3")
				if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "looked at") {
					t.Errorf("%v\n%s", err, out)
					return
				} else if strings.Contains(string(out), oneMore) {
					more.Add(1)
				}
			}
		})
	}
	programs.Wait()
	if n := more.Load(); n > 4 {
		t.Errorf("%d of 80 programs have a thread too many with the long slack", n)
	}
}

const oneMore = "one thread more has the long slack"

func mayReadSlack() bool {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false
	}
	for _, task := range tasks {
		if _, err := os.ReadFile("/proc/" + task.Name() + "/timerslack_ns"); err != nil {
			return false
		}
	}
	return true
}

func restarted(t *testing.T) {
	if err := Start(); err != nil {
		t.Fatal(err)
	}
	if n := slackened(t); n < 1 || n > 3 {
		t.Errorf("%d threads have the long slack", n)
	} else if n == 3 {
		fmt.Println(oneMore)
	}
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || now != usual {
		t.Errorf("this thread has a slack of %d ns (%v)", now, err)
	}
	// Work for all processors, and garbage collections, need threads.
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 20 {
				_ = make([]byte, 1<<20)
				runtime.GC()
			}
		})
	}
	work.Wait()
	// The monitor may have made one thread for the work.
	if n := slackened(t); n < 1 || n > 3 {
		t.Errorf("%d threads have the long slack after the work", n)
	}
	fmt.Println("looked at its threads")
}

// slackened returns the number of threads that have the long slack.
func slackened(t *testing.T) (long int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile("/proc/" + task.Name() + "/timerslack_ns")
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(string(b)) == fmt.Sprint(slack) {
			long++
		}
	}
	return long
}

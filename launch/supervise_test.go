package launch

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"testing"
	"time"
)

// slowReader takes the first part of the output only after a time.
type slowReader struct {
	bytes.Buffer
	pause time.Duration
}

func (s *slowReader) Write(b []byte) (int, error) {
	time.Sleep(s.pause)
	s.pause = 0
	return s.Buffer.Write(b)
}

// TestSlowReaderGetsAllOutput checks that output which is still in the pipe when the launcher ends
// is not lost, however slow its reader is.
func TestSlowReaderGetsAllOutput(t *testing.T) {
	out := &slowReader{pause: Grace + time.Second}
	cmd := exec.Command("sh", "-c", "printf first; sleep 0.1; head -c 60000 /dev/zero")
	cmd.Stdout = out
	if status, err := supervise(context.Background(), cmd, "mark", nil); status != 0 || err != nil {
		t.Fatal(status, err)
	}
	if out.Len() != 60005 {
		t.Errorf("%d of 60005 bytes arrived", out.Len())
	}
}

// TestOutputThatStaysOpenEndsAnyway checks that a process which is not the launcher's does not keep
// a half from ending, neither by silence nor by output without end, and that a reader which takes
// nothing does not after an interrupt.
func TestOutputThatStaysOpenEndsAnyway(t *testing.T) {
	stuck, w := io.Pipe()
	defer stuck.Close()
	for _, c := range []struct {
		name, script string
		to           io.Writer
		interrupted  bool
	}{
		{"a silent process", "setsid sleep 12 & echo hi", io.Discard, false},
		{"a process that writes on", "setsid timeout 12 yes & echo hi", io.Discard, false},
		{"a reader that takes nothing", "yes", w, true},
	} {
		ctx, interrupt := context.WithCancel(context.Background())
		if c.interrupted {
			time.AfterFunc(100*time.Millisecond, interrupt)
		}
		cmd := exec.Command("sh", "-c", c.script)
		cmd.Stdout = c.to
		begin := time.Now()
		_, err := supervise(ctx, cmd, "mark", nil)
		interrupt()
		if took := time.Since(begin); err != nil || took > 5*Grace {
			t.Errorf("%s: %v after %v", c.name, err, took)
		}
	}
}

package boot

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/traffic/trace"
)

// recording is what `zipper run --record` asks for: this rank's traffic (an engine.Recorder), in
// times since the engine's start. That is when the last rank had joined, at nearly the same moment
// everywhere, so the clocks of the hosts do not matter.
type recording struct {
	trace *trace.Recorder
	path  string
	host  string
	used  time.Duration // processor time before
}

func newRecording(prefix string, rank int, host string) *recording {
	return &recording{trace.NewRecorder(rank, recordLimit), fmt.Sprintf("%s%d", prefix, rank), host, processorTime()}
}

func (r *recording) Sent(at time.Duration, to, bytes int) {
	r.trace.Sent(int64(at), int64(processorTime()-r.used), to, int64(bytes))
}

func (r *recording) Received(at time.Duration, from int) {
	r.trace.Received(int64(at), int64(processorTime()-r.used), from)
}

// processorTime is what this process has had so far: what passed without it was waiting, for
// messages or for a processor.
func processorTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func (r *recording) Inside(to int, bytes int64) { r.trace.Count(to, bytes) }

// Close leaves this rank's part where the launcher looks for it.
func (r *recording) Close() error {
	f, err := os.Create(r.path)
	if err != nil {
		return fmt.Errorf("recording traffic: %w", err)
	}
	err = r.trace.Write(f, r.host)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("recording traffic: %w", err)
	}
	return nil
}

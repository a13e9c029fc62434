package boot

import (
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/traffic/trace"
	"github.com/leidenzipper/zipper/internal/wholefile"
)

// recording is what `zipper run --record` asks for: this rank's traffic (an engine.Recorder), in
// times since the engine's start. That is when the last rank had joined, at nearly the same moment
// everywhere, so the clocks of the hosts do not matter.
type recording struct {
	trace *trace.Recorder
	path  string
	host  string

	mu     sync.Mutex
	unused time.Duration // processor time that was not computing: before, and in waits that are over
	waits  int           // under way
	begun  time.Duration // processor time when the first of them began
	early  []int         // whose messages arrived, in order, while nobody waited
}

func newRecording(prefix string, rank int, host string) *recording {
	return &recording{trace: trace.NewRecorder(rank, recordLimit), path: fmt.Sprintf("%s%d", prefix, rank), host: host,
		unused: processorTime()}
}

func (r *recording) Sent(at time.Duration, to, bytes int) {
	r.trace.Sent(int64(at), int64(r.computed()), to, int64(bytes))
}

func (r *recording) Received(at time.Duration, from int) {
	r.trace.Received(int64(at), int64(r.computed()), from)
}

// Arrived keeps what nobody waits for until somebody looks: to the program it makes no difference
// when that arrives, and so to a simulation, in which it can be later.
func (r *recording) Arrived(at time.Duration, from int) {
	r.mu.Lock()
	early := r.waits == 0
	if early {
		r.early = append(r.early, from)
	}
	r.mu.Unlock()
	if !early {
		r.Received(at, from)
	}
}

// computed is the processor time that this process has used so far for what it does itself: waits
// spin, and how long is the messages' affair.
func (r *recording) computed() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waits > 0 {
		return r.begun - r.unused
	}
	return processorTime() - r.unused
}

func (r *recording) Waits(at time.Duration, begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if begins {
		if r.waits++; r.waits == 1 {
			r.begun = processorTime()
		}
		r.look(at)
	} else if r.waits--; r.waits == 0 {
		r.unused += processorTime() - r.begun
	}
}

// look notes that what arrived early is there. The caller holds mu, and begun is now.
func (r *recording) look(at time.Duration) {
	for _, from := range r.early {
		r.trace.Received(int64(at), int64(r.begun-r.unused), from)
	}
	r.early = r.early[:0]
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

// Close leaves this rank's part where the launcher looks for it.
func (r *recording) Close(at time.Duration) error {
	r.Waits(at, true) // for nothing more; what arrived is in the recording
	err := wholefile.Write(r.path, 0o666, func(w io.Writer) error { return r.trace.Write(w, r.host) })
	if err != nil {
		return fmt.Errorf("recording traffic: %w", err)
	}
	return nil
}

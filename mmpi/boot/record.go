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

// recording implements `zipper run --record`: this rank's traffic (an engine.Recorder), in times
// since the engine's start. The engines start when the last rank has joined, at nearly the same
// moment, so the clocks of the hosts do not matter.
type recording struct {
	trace *trace.Recorder
	path  string
	host  string

	mu sync.Mutex
	// unused is processor time that was not computing: before the start, and in waits that have
	// ended.
	unused time.Duration
	waits  int           // number of waits under way
	begun  time.Duration // processor time when the first of them began
	early  []int         // sources of messages that arrived, in order, while the program did not wait
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

// Arrived keeps a message for which the program does not wait until the program looks. Its arrival
// in between makes no difference to the program, nor to a simulation, in which it can be later.
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

// computed returns the processor time that this process has spent computing so far. Waits are not
// included, because they spin and their length depends on messages.
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

// look records that early messages have arrived. The caller holds mu; begun must be now.
func (r *recording) look(at time.Duration) {
	for _, from := range r.early {
		r.trace.Received(int64(at), int64(r.begun-r.unused), from)
	}
	r.early = r.early[:0]
}

// processorTime returns the processor time of this process so far. The rest of the elapsed time was
// waiting, for messages or for a processor.
func processorTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Close writes this rank's part where the launcher looks for it.
func (r *recording) Close(at time.Duration) error {
	r.Waits(at, true) // the last wait; arrived messages are in the recording
	err := wholefile.Write(r.path, 0o666, func(w io.Writer) error { return r.trace.Write(w, r.host) })
	if err != nil {
		return fmt.Errorf("recording traffic: %w", err)
	}
	return nil
}

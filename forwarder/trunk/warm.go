package trunk

import (
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
)

// Warming opens the windows of a connection over a long path before it is used. TCP begins with ten
// packets and doubles that in each round trip, so a cold connection takes seven for a MiB. Here
// batches of packets that say nothing do so first: each, as soon as the last one is answered, twice
// as long, up to a Burst. On a short path one packet is sent, which shows that it gets there. The
// zero value has not begun. Not safe for concurrent use.
type Warming struct {
	batch   int // packets under way at first
	missing int // answers to them
	sent    time.Time
}

// Begin gives how many packets to send first.
func (w *Warming) Begin(now time.Time) (packets int) {
	*w = Warming{1, 1, now}
	return 1
}

// Answered notes the answer to a packet, and gives how many to send now. A batch that took much
// longer than the shortest round trip has filled the path: more would only wait in it.
func (w *Warming) Answered(now time.Time, path transport.Path, known bool) (packets int) {
	if w.missing == 0 {
		return 0 // of some other question
	}
	if w.missing--; w.missing > 0 || w.batch >= lastBatch || !known || path.RoundTrip <= Far ||
		now.Sub(w.sent) > full*path.RoundTrip {
		return 0
	}
	*w = Warming{2 * w.batch, 2 * w.batch, now}
	return w.batch
}

// Silent reports whether no packet has been answered.
func (w *Warming) Silent() bool { return w.batch == 1 && w.missing == 1 }

// Warm reports whether it is over, or has not begun.
func (w *Warming) Warm() bool { return w.missing == 0 }

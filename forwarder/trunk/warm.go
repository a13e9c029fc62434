package trunk

import (
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
)

// Warming opens the windows of a connection over a long path before it is used. TCP begins with ten
// packets and doubles that in each round trip, so a cold connection takes seven round trips for a
// MiB. Batches of empty packets open the windows in advance: each batch is sent once the last one
// is answered, and is twice as long, up to a Burst. On a short path one packet is sent, which shows
// that packets arrive. The zero value has not begun. It is not safe for concurrent use.
type Warming struct {
	batch   int       // the number of packets in the current batch
	missing int       // the number of packets in the batch that are not answered yet
	sent    time.Time // the time at which the batch was sent
}

// Begin starts to warm a connection at the time now, and returns the number of packets to send
// first.
func (w *Warming) Begin(now time.Time) (packets int) {
	*w = Warming{1, 1, now}
	return 1
}

// Answered records the answer to a packet, and returns the number of packets to send now. A batch
// that took much longer than the shortest round trip has filled the path: more packets would only
// wait in queues.
func (w *Warming) Answered(now time.Time, path transport.Path, known bool) (packets int) {
	if w.missing == 0 {
		return 0 // the answer to a packet of another purpose
	}
	if w.missing--; w.missing > 0 || w.batch >= lastBatch || !known || path.RoundTrip <= Far ||
		now.Sub(w.sent) > full*path.RoundTrip {
		return 0
	}
	*w = Warming{2 * w.batch, 2 * w.batch, now}
	return w.batch
}

// Silent reports whether the first packet has been sent and no packet has been answered.
func (w *Warming) Silent() bool { return w.batch == 1 && w.missing == 1 }

// Warm reports whether the connection may be used: all packets were answered, or none is to be
// sent.
func (w *Warming) Warm() bool { return w.missing == 0 }

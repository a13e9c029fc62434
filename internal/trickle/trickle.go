// Package trickle finds frames that never come to their end.
package trickle

import "time"

// Detector finds a link on which a part of a frame was left out: its receiver takes what follows
// for the rest of that frame. If the sender has little more to say, each end hears something of the
// other now and then, and waits for ever. A frame of a sound link comes to its end, or pauses and
// then goes on with all that fits, for its sender does nothing else before.
type Detector struct {
	begun uint64        // where the frame begins, in bytes of the link
	read  uint64        // bytes from the link at the last look
	few   uint64        // bytes of it since
	since time.Duration // then: not much has come at any look, and no look was too late
	last  time.Duration // look at which something had come last
}

// trickled is how much of a frame comes at least, in bytes, when its sender goes on.
const trickled = 4 << 10

// Look reports whether a frame has trickled for longer than patience, which is longer than the
// time between two pings. So many bytes were read by now, those of the frame at hand, which is not
// complete, from begun on; without one, begun is read.
func (t *Detector) Look(now time.Duration, read, begun uint64, patience time.Duration) bool {
	n := read - t.read
	t.read = read
	if begun != t.begun || begun == read {
		t.begun, t.few, t.last = begun, 0, now
		return false
	}
	if n == 0 {
		return false
	}
	late := now-t.last > patience // it has stood still, and now goes on, perhaps
	t.last = now
	if t.few += n; t.few == n || t.few >= trickled || late {
		t.since, t.few = now, min(n, trickled-1)
		return false
	}
	return now-t.since >= patience
}

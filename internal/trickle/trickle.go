// Package trickle finds frames that are never completed.
package trickle

import "time"

// Detector finds a link on which a part of a frame was lost: its receiver takes the following bytes
// for the rest of that frame. If the sender has little more to send, each end receives a few bytes
// now and then, and waits for ever. A frame of a sound link is completed, or pauses and then
// continues with all that fits, because its sender does nothing else before.
type Detector struct {
	begun uint64 // position at which the frame begins, in bytes of the link
	read  uint64 // bytes of the link read at the last look
	// few is the number of bytes of the frame that the look at since and those after it have found.
	few uint64
	// since is the time of the look from which on fewer than trickled new bytes were found in all,
	// and no look was late.
	since time.Duration
	last  time.Duration // time of the last look that found new bytes or another frame
}

// trickled is the smallest number of new bytes of a frame, in all looks since Detector.since, that
// shows that its sender goes on.
const trickled = 4 << 10

// Look reports whether a frame has trickled for patience, which must be longer than the time
// between two pings. read is the number of bytes read so far, and begun the position at which the
// incomplete frame begins, or read if there is none.
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
	late := now-t.last > patience // the process was stopped and may have just continued
	t.last = now
	if t.few += n; t.few == n || t.few >= trickled || late {
		t.since, t.few = now, min(n, trickled-1)
		return false
	}
	return now-t.since >= patience
}

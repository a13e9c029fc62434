// Package demand decides for which peer a process asks its forwarder for a direct link, and when.
// It is a state machine: its caller reports frames and links with their times.
//
// A pair that exchanges little stays with the forwarder, which serves any number of pairs over one
// link. A pair whose direct link does not last asks again after longer and longer pauses.
package demand

import "time"

// Pair is the demand of one pair of processes, in the view of one of them. The zero value is that
// of a pair that has exchanged nothing.
type Pair struct {
	weight int           // weight of the frames since the last request or link, in bytes
	due    bool          // Relayed has returned true, and the caller has not called Request or Skip since.
	next   time.Duration // time before which there is no further request
	pause  time.Duration // pause after the last request; 0: none was made since a link lasted
	upAt   time.Duration // time at which the last direct link came up
}

// Relayed counts a frame of n bytes that was sent over a forwarder. It returns true, once, if the
// frames of the pair weigh at least as much as a direct link requires (least, in bytes). The caller
// then calls Request or Skip.
func (p *Pair) Relayed(n, least int) (enough bool) {
	p.weight += n + frameWeight
	if p.weight < least || p.due {
		return false
	}
	p.due = true
	return true
}

// Skip records that the caller asks for no direct link now. The pair must first exchange as much
// again.
func (p *Pair) Skip() { p.weight, p.due = 0, false }

// Request reports whether the caller, the process of rank mine, must ask for a direct link to a
// peer at the time now. If it returns false, the pair must first exchange as much again. first is
// the pause after the first request, which doubles with each one.
func (p *Pair) Request(now, first time.Duration, mine, peer int) bool {
	p.Skip()
	if now < p.next {
		return false
	}
	p.pause = min(max(2*p.pause, first), maxPause)
	p.next = now + shorter(p.pause, mine, peer)
	return true
}

// shorter returns a pause of half of d at least, and d at most, which depends on the pair of ranks:
// pairs that have asked at the same time, such as those of a collective, do not ask again at the
// same time.
func shorter(d time.Duration, mine, peer int) time.Duration {
	hash := (uint64(mine)<<32 ^ uint64(peer) + 1) * 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	hash = (hash ^ hash>>29) * 0xbf58476d1ce4e5b9                      // the multiplier of SplitMix64
	return d - time.Duration(hash>>44)*(d/2)>>20
}

// Up records that a direct link came up at the time now.
func (p *Pair) Up(now time.Duration) { p.upAt = now }

// Down records that the direct link was lost, or closed, at the time now. After a link that has
// lasted, the pair may ask for another one as soon as it has exchanged enough.
func (p *Pair) Down(now time.Duration) {
	p.weight = 0
	if now-p.upAt >= lasting {
		p.pause, p.next = 0, 0
	}
}

// Use records when a direct link was used last.
type Use struct {
	frames uint64        // number of frames that had arrived at the last look
	at     time.Duration // time of the last look that found new frames
}

// Begin begins to watch a link that is new at the time now.
func (u *Use) Begin(now time.Duration) { *u = Use{at: now} }

// Look records at the time now that so many frames have arrived over the link.
func (u *Use) Look(now time.Duration, frames uint64) {
	if frames != u.frames {
		u.frames, u.at = frames, now
	}
}

// Idle returns for how long the link has not been used at the time now.
func (u *Use) Idle(now time.Duration) time.Duration { return now - u.at }

// MayClose reports whether a link that is idle for so long may be closed to make room for another
// one.
func MayClose(idle time.Duration) bool { return idle >= idleLong }

// Forgotten reports whether a link that is idle for so long must be closed.
func Forgotten(idle time.Duration) bool { return idle >= idleLongest }

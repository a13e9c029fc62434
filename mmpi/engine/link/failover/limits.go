package failover

import "time"

const (
	// firstRedial is the pause after the first attempt to reconnect a rail, in nanoseconds. Default
	// 50 ms, doubled up to maxRedial.
	firstRedial = 50 * time.Millisecond

	// maxRedial is the longest pause between two attempts, in nanoseconds. Default 2 s.
	maxRedial = 2 * time.Second

	// deadAfter is how long a rank may be unreachable while no lost link can come back, in
	// nanoseconds. Default 1 s: most likely the rank has died.
	deadAfter = time.Second

	// refusedFor is how long a job of one hop goes on after the loss of its link, while its only
	// forwarder refuses connections without having sent Bye, in nanoseconds. Default 2 s: most
	// likely its process has died. A process that must repeat its Bye tries a forwarder that
	// refuses connections for as long.
	refusedFor = 2 * time.Second

	// maxStrikes is the number of losses of a link in a row, each within strikeTime and without
	// progress, at which the job ends, or a direct link is given up. Default 6: with the pauses
	// between them at least 1.5 s.
	maxStrikes = 6

	// strikeTime is how long a link must last so that its loss is not counted in a row with earlier
	// ones, in nanoseconds. Default 10 s.
	strikeTime = 10 * time.Second

	// lateAfter is when the user is warned of a forwarder that has never been reached, in
	// nanoseconds after the start. Default 3 s: the parts of a job may start in any order.
	lateAfter = 3 * time.Second

	// cutAfter is when the user is warned that forwarders have lost each other, in nanoseconds.
	// Default 2 s: most such links are reconnected within it.
	cutAfter = 2 * time.Second
)

// Backoff returns the pause before the next attempt to reconnect. last is the pause before the
// previous attempt, or 0 if that was the first one.
func Backoff(last time.Duration) time.Duration {
	if last == 0 {
		return firstRedial
	}
	return min(2*last, maxRedial)
}

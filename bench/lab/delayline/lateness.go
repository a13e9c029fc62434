package delayline

import (
	"math/bits"
	"time"
)

// Lateness counts durations in classes of an eighth of an octave, so a quantile is at most 12.5 %
// too high. The zero value is empty.
type Lateness struct {
	classes [64 * 8]uint64
	n       uint64
	longest time.Duration
}

// Add counts a duration n times; a negative one counts as 0.
func (l *Lateness) Add(d time.Duration, n int) {
	d = max(d, 0)
	l.classes[class(uint64(d))] += uint64(n)
	l.n += uint64(n)
	l.longest = max(l.longest, d)
}

// Quantile returns the upper end of the class in which the share p of all lies, or 0 if there are
// none.
func (l *Lateness) Quantile(p float64) time.Duration {
	want := uint64(p * float64(l.n))
	for i, n := range l.classes {
		if n > want {
			return min(time.Duration(top(i)), l.longest)
		}
		want -= n
	}
	return l.longest
}

// class returns the class of v: below 16 each value has its own, and every octave has eight.
func class(v uint64) int {
	if v < 16 {
		return int(v)
	}
	shift := bits.Len64(v) - 4
	return shift*8 + int(v>>shift)
}

// top returns the largest value of a class.
func top(i int) uint64 {
	if i < 16 {
		return uint64(i)
	}
	shift := i/8 - 1
	return (uint64(i-shift*8)+1)<<shift - 1
}

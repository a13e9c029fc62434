// Package facts describes the format of data in the memory of processes, which those of one job
// compare.
package facts

import (
	"fmt"
	"strings"
)

// Word describes the format of data in the memory of a process, in groups of four bits from the
// lowest on: the byte order (1 little endian, 2 big endian); the logarithms to base 2 of the sizes
// in bytes of int, long, pointers, wchar_t and long double; the format of long double; and the
// value of Fortran's .true. (0 unknown, 1 one, 2 minus one, 3 another). Zero describes a process
// that sends no data.
type Word uint32

// These are the formats of long double.
const (
	longX87  = 1 // x87 extended, in 16 bytes
	longQuad = 2 // IEEE binary128
)

const (
	longShift, longMask   = 24, Word(0xf) << 24
	trueShift, trueMask   = 28, Word(0xf) << 28
	sizesShift, sizesMask = 4, Word(0xfffff) << 4
)

func (f Word) group(shift int) int { return int(f >> shift & 0xf) }

// name returns names[i], or a number without a name.
func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown (%d)", i)
}

// String describes the facts for users.
func (f Word) String() string {
	if f == 0 {
		return "no data"
	}
	var b strings.Builder
	b.WriteString(name([]string{"unknown byte order", "little endian", "big endian"}, f.group(0)))
	for i, what := range []string{"int", "long", "pointer", "wchar_t", "long double"} {
		fmt.Fprintf(&b, ", %s %d", what, 1<<f.group(sizesShift+4*i))
	}
	b.WriteString(" bytes (" + name([]string{"unknown", "x87", "binary128", "two doubles", "double"}, f.group(longShift)) + ")")
	if f&trueMask != 0 {
		b.WriteString(", .true. is " + name([]string{"", "1", "-1", "neither 1 nor -1"}, f.group(trueShift)))
	}
	return b.String()
}

// Fits returns the reason for which processes with facts f and g cannot be in one job, or "". Their
// formats of long double may differ if each is x87's or binary128.
func (f Word) Fits(g Word) string {
	if f == 0 || g == 0 {
		return ""
	}
	differ := f ^ g
	switch {
	case differ&0xf != 0:
		return "the byte orders differ"
	case differ&sizesMask != 0:
		return "the sizes of types differ"
	case differ&longMask != 0 && (!f.exchanges() || !g.exchanges()):
		return "the formats of long double differ, and only x87 and binary128 can be converted"
	case differ&trueMask != 0 && f&trueMask != 0 && g&trueMask != 0:
		return "the values of Fortran's .true. differ: use Fortran compilers, or options of them, with the same value"
	}
	return ""
}

func (f Word) exchanges() bool {
	return f.group(longShift) == longX87 || f.group(longShift) == longQuad
}

// Mixed reports whether long doubles have different formats in processes with these facts.
func Mixed(list []Word) bool {
	var one Word
	for _, f := range list {
		switch {
		case f&longMask == 0:
		case one == 0:
			one = f & longMask
		case f&longMask != one:
			return true
		}
	}
	return false
}

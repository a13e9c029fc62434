// Package num lets one algorithm run with exact rationals or with floats.
//
// The models compare for equality (is this link saturated, do these transfers
// end together), so exact rationals are the reference. Float is the fast path
// for large patterns; its comparisons take values within a relative 1e-9 as
// equal, so that the same branches are taken.
package num

import (
	"math"
	"math/big"
	"strconv"
)

// Number is the arithmetic that the models need. All operations return new values; the zero value
// of an implementation is 0.
type Number[T any] interface {
	Add(T) T
	Sub(T) T
	Mul(T) T
	// Div divides; the divisor must not be 0 (Rat panics, Float gives ±Inf).
	Div(T) T
	// Cmp returns -1, 0 or 1. Float treats values within a relative 1e-9 as equal.
	Cmp(T) int
	// Sign returns -1, 0 or 1.
	Sign() int
	// FromInt, FromRat and FromFloat convert and ignore the receiver. A float must be finite (Rat
	// panics).
	FromInt(int64) T
	FromRat(*big.Rat) T
	FromFloat(float64) T
	Float64() float64
	String() string
}

// Int returns n as a number of type T.
func Int[T Number[T]](n int64) T {
	var z T
	return z.FromInt(n)
}

// Max returns the greater of a and b.
func Max[T Number[T]](a, b T) T {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

// Finite reports whether x is a number: neither NaN nor infinite.
func Finite[T Number[T]](x T) bool {
	d := x.Sub(x)
	return d.Cmp(d) == 0
}

// Rat is an immutable exact rational. It is safe for concurrent use.
type Rat struct{ r *big.Rat }

var zero = new(big.Rat) // never written

func (a Rat) value() *big.Rat {
	if a.r == nil {
		return zero
	}
	return a.r
}

// NewRat returns the value of r, of which it keeps a copy.
func NewRat(r *big.Rat) Rat { return Rat{new(big.Rat).Set(r)} }

// Frac returns n/d; d must not be 0.
func Frac(n, d int64) Rat { return Rat{big.NewRat(n, d)} }

// ParseRat parses "7/2", "3.5" or "1e9" exactly. ok is false if s is not a number.
func ParseRat(s string) (Rat, bool) {
	r, ok := new(big.Rat).SetString(s)
	return Rat{r}, ok
}

func (a Rat) Add(b Rat) Rat         { return Rat{new(big.Rat).Add(a.value(), b.value())} }
func (a Rat) Sub(b Rat) Rat         { return Rat{new(big.Rat).Sub(a.value(), b.value())} }
func (a Rat) Mul(b Rat) Rat         { return Rat{new(big.Rat).Mul(a.value(), b.value())} }
func (a Rat) Div(b Rat) Rat         { return Rat{new(big.Rat).Quo(a.value(), b.value())} }
func (a Rat) Cmp(b Rat) int         { return a.value().Cmp(b.value()) }
func (a Rat) Sign() int             { return a.value().Sign() }
func (Rat) FromInt(n int64) Rat     { return Rat{new(big.Rat).SetInt64(n)} }
func (Rat) FromRat(r *big.Rat) Rat  { return NewRat(r) }
func (Rat) FromFloat(f float64) Rat { return NewRat(new(big.Rat).SetFloat64(f)) }
func (a Rat) Float64() float64      { f, _ := a.value().Float64(); return f }
func (a Rat) String() string        { return a.value().RatString() }
func (a Rat) Rat() *big.Rat         { return new(big.Rat).Set(a.value()) }

// Float is a float64 whose comparison has a relative tolerance of 1e-9.
type Float float64

const tolerance = 1e-9

func (a Float) Add(b Float) Float { return a + b }
func (a Float) Sub(b Float) Float { return a - b }
func (a Float) Mul(b Float) Float { return a * b }
func (a Float) Div(b Float) Float { return a / b }

func (a Float) Cmp(b Float) int {
	if a == b {
		return 0
	}
	d, m := math.Abs(float64(a-b)), max(math.Abs(float64(a)), math.Abs(float64(b)))
	switch {
	case d <= tolerance*m && !math.IsInf(m, 0):
		return 0
	case a < b:
		return -1
	}
	return 1
}

func (a Float) Sign() int {
	switch {
	case a > 0:
		return 1
	case a < 0:
		return -1
	}
	return 0
}

func (Float) FromInt(n int64) Float     { return Float(n) }
func (Float) FromRat(r *big.Rat) Float  { f, _ := r.Float64(); return Float(f) }
func (Float) FromFloat(f float64) Float { return Float(f) }
func (a Float) Float64() float64        { return float64(a) }
func (a Float) String() string          { return strconv.FormatFloat(float64(a), 'g', 10, 64) }

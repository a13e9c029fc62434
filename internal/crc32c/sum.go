// Package crc32c computes the CRC32C, as hash/crc32 does with Castagnoli's polynomial, but two to
// three times as fast where the processor multiplies polynomials in vectors of 64 bytes.
package crc32c

import "hash/crc32"

// table is the table of the polynomial that processors implement.
var table = crc32.MakeTable(crc32.Castagnoli)

// least is the smallest number of bytes for fold. Lengths must be multiples of it.
const least = 256

// Sum returns the CRC32C of b. It does not allocate, and is safe for concurrent use.
func Sum(b []byte) uint32 { return Update(0, b) }

// Update continues the sum of the bytes before b, which is 0 if there are none, and returns the new
// sum. It does not allocate, and is safe for concurrent use.
func Update(sum uint32, b []byte) uint32 {
	if n := len(b) / block * block; n > 0 && folds {
		sum, b = ^weave(^sum, b[:n], &distances, &runs), b[n:]
	}
	if n := len(b) &^ (least - 1); n > 0 && folds {
		sum, b = ^fold(^sum, b[:n], &distances), b[n:]
	}
	if len(b) == 0 {
		return sum
	}
	return crc32.Update(sum, table, b)
}

// A block is the amount that weave processes at once. Part of it is folded, `least` bytes first and
// in each turn. The rest is three runs for the processor's own instruction, which processes 40
// bytes of each in a turn.
const (
	turns = 64
	run   = turns * 40
	block = (turns+1)*least + 3*run
)

// distances has the factors for the distances by which fold moves 16 bytes on: 256 bytes, 64 and
// 16.
var distances = [3]factors{over(8 * 256), over(8 * 64), over(8 * 16)}

// factors are x^(bits+32) and x^(bits-32) modulo the polynomial. Let A be a polynomial of degree
// 127, and H and L its halves of high and low powers. Then A·x^bits is congruent to H·x^(bits+64) +
// L·x^bits, and so to the sum of the products of H and L with the two factors times x^32, of degree
// 127 again. (V. Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction", Intel 2009, "Folding".)
type factors [2]uint64

// runs move a sum on by three runs, two and one. A product of two numbers of 32 bits is one place
// too low in 64, and the instruction that reduces it multiplies by x^32.
var runs = [3]uint64{power(8*3*run-33) >> 1, power(8*2*run-33) >> 1, power(8*run-33) >> 1}

func over(bits int) factors { return factors{power(bits + 32), power(bits - 32)} }

// power returns x^n modulo the polynomial, in the form that the processor's multiplication needs if
// the lowest bit is the highest power. A product of two numbers of 64 bits has 127, so it is one
// place too low, and a factor of 33 bits makes up for that. The factor x^32 accounts for its 32
// bits of powers not being at the high end of the 64.
func power(n int) uint64 {
	r := uint32(1) << 31 // x^0
	for range n {
		carry := r & 1
		if r >>= 1; carry == 1 {
			r ^= crc32.Castagnoli
		}
	}
	return uint64(r) << 1
}

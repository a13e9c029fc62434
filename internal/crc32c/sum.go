// Package crc32c computes the CRC32C, as hash/crc32 does with Castagnoli's polynomial, in half the
// time where the processor multiplies polynomials in vectors of 64 bytes, and in a third of it where
// the bytes come from memory.
package crc32c

import "hash/crc32"

// table is the polynomial that processors compute.
var table = crc32.MakeTable(crc32.Castagnoli)

// least is the least number of bytes that fold takes; it takes multiples of that.
const least = 256

// Sum is the CRC32C of b. It does not allocate, and is safe for concurrent use.
func Sum(b []byte) uint32 { return Update(0, b) }

// Update goes on with the sum of what is before b, 0 if that is nothing. It does not allocate, and
// is safe for concurrent use.
func Update(sum uint32, b []byte) uint32 {
	if n := len(b) &^ (least - 1); n > 0 && folds {
		sum, b = ^fold(^sum, b[:n], &distances), b[n:]
	}
	if len(b) == 0 {
		return sum
	}
	return crc32.Update(sum, table, b)
}

// distances are by how many bits fold moves on 16 bytes: those of 256 bytes, of 64, of 16.
var distances = [3]factors{over(8 * 256), over(8 * 64), over(8 * 16)}

// factors are x^(bits+32) and x^(bits-32) modulo the polynomial. Let A be a polynomial of degree
// 127, and H and L its halves of high and low powers. Then A·x^bits is congruent to
// H·x^(bits+64) + L·x^bits, and so to the sum of the products of H and L with the two factors times
// x^32, of degree 127 again. (V. Gopal and others, "Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ Instruction", Intel 2009, "Folding".)
type factors [2]uint64

func over(bits int) factors { return factors{power(bits + 32), power(bits - 32)} }

// power is x^n modulo the polynomial, as the processor's multiplication wants it where the lowest
// bit is the highest power: a product of two numbers of 64 bits has 127, so it is one place too low,
// and a factor of 33 bits makes up for that. That the 32 bits are the high ones of the 64 is the x^32.
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

package crc32c

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

func random(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// needFold skips the test where fold is not available, because hash/crc32 would be compared with
// itself.
func needFold(t testing.TB) {
	if !folds {
		t.Skip("this processor does not multiply polynomials in vectors of 64 bytes")
	}
}

// TestCheckValue checks the value of the CRC catalogue (CRC-32/ISCSI), on every processor.
func TestCheckValue(t *testing.T) {
	if got := Sum([]byte("123456789")); got != 0xe3069283 {
		t.Errorf("%08x", got)
	}
	if got := Update(Sum([]byte("1234")), []byte("56789")); got != 0xe3069283 {
		t.Errorf("in two parts %08x", got)
	}
}

// TestUpdate compares with hash/crc32 for every length up to several turns of the loop, at every
// alignment in a vector, after any sum.
func TestUpdate(t *testing.T) {
	needFold(t)
	b := random(5*least + 64)
	for n := range 5 * least {
		for _, from := range []int{0, 1, 8, n % 64, 63} {
			for _, sum := range []uint32{0, 1, 0xffffffff, uint32(n) * 2654435761} {
				if got, want := Update(sum, b[from:from+n]), crc32.Update(sum, table, b[from:from+n]); got != want {
					t.Fatalf("%d bytes from %d, after %08x: %08x, want %08x", n, from, sum, got, want)
				}
			}
		}
	}
	long := random(4*block + 64)
	for _, n := range []int{block - 1, block, block + 1, block + least, 2*block - 1, 2 * block, 3*block + 1000,
		4 * block} {
		for from := range 64 {
			if got, want := Update(7, long[from:from+n]), crc32.Update(7, table, long[from:from+n]); got != want {
				t.Fatalf("%d bytes from %d: %08x, want %08x", n, from, got, want)
			}
		}
	}
}

// TestEveryBit checks that each bit changes the sum.
func TestEveryBit(t *testing.T) {
	b := random(block + 3*least + 5)
	was := Sum(b)
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		if Sum(b) == was {
			t.Fatalf("bit %d", bit)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
}

func TestNoAllocation(t *testing.T) {
	b := random(4096)
	if n := testing.AllocsPerRun(100, func() { Sum(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add(uint32(0), []byte{}, uint16(0))
	f.Add(uint32(1), random(least), uint16(0))
	f.Add(uint32(0xffffffff), random(3*least+77), uint16(130))
	f.Fuzz(func(t *testing.T, sum uint32, b []byte, at uint16) {
		needFold(t)
		for len(b) < 2*least { // the fuzzer prefers short inputs
			b = append(b, append([]byte{byte(len(b))}, b...)...)
		}
		cut := int(at) % (len(b) + 1)
		if got, want := Update(Update(sum, b[:cut]), b[cut:]), crc32.Update(sum, table, b); got != want {
			t.Errorf("%d bytes cut at %d, after %08x: %08x, want %08x", len(b), cut, sum, got, want)
		}
	})
}

// BenchmarkSum measures Sum beside hash/crc32.
func BenchmarkSum(b *testing.B) {
	for _, n := range []int{256, 4 << 10, 128 << 10, 1 << 20, 64 << 20} {
		p := random(n)
		for name, sum := range map[string]func([]byte) uint32{
			"crc32c":     Sum,
			"hash/crc32": func(p []byte) uint32 { return crc32.Checksum(p, table) },
		} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					sum(p)
				}
			})
		}
	}
}

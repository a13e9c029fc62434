package npb

// NPB's generator computes x ← a·x mod 2^46, with results x·2^-46 in (0, 1).
const (
	mask46 = 1<<46 - 1
	r46    = 1.0 / (1 << 46)
	mul5   = 1220703125 // 5^13, the usual multiplier
)

// random is a stream of the generator. The zero value must be seeded.
type random struct{ x, a uint64 }

func newRandom(seed uint64) *random { return &random{seed, mul5} }

// next advances the stream. The product is right modulo 2^46 although it overflows 64 bits.
func (r *random) next() float64 {
	r.x = r.x * r.a & mask46
	return float64(r.x) * r46
}

// power returns a^n mod 2^46: a jump of n places in a stream is a multiplication by it.
func power(a uint64, n uint64) uint64 {
	p := uint64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p = p * a & mask46
		}
		a = a * a & mask46
	}
	return p
}

// skip jumps n places ahead.
func (r *random) skip(n uint64) { r.x = r.x * power(r.a, n) & mask46 }

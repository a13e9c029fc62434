//go:build openmpi || mpich

package npb

import (
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/mmpi"
)

// IS runs the benchmark "integer sort": it ranks keys with a roughly Gaussian distribution by
// buckets, with an all-to-all in every step. The number of ranks must be a power of two.
func IS(p *mmpi.Process, class Class) (Result, error) {
	par, ok := isClasses[class]
	if !ok {
		return Result{}, fmt.Errorf("npb: IS has no class %v", class)
	}
	w := p.World()
	if err := powerOfTwo("IS", w.Size()); err != nil {
		return Result{}, err
	}
	s := newIS(w, par)
	const steps = 10
	if err := s.step(1); err != nil { // untimed
		return Result{}, err
	}
	if err := w.Barrier(); err != nil {
		return Result{}, err
	}
	s.passed = 0
	start := time.Now()
	for i := 1; i <= steps; i++ {
		if err := s.step(i); err != nil {
			return Result{}, err
		}
	}
	t, err := slowest(w, seconds(start))
	if err != nil {
		return Result{}, err
	}
	sorted, err := s.sorted()
	return Result{
		Kernel: "IS", Class: class.String(), Size: fmt.Sprint(s.n), Ranks: w.Size(), Steps: steps, Seconds: t,
		Mops: float64(steps*s.n) / t / 1e6, Verified: sorted && s.passed == steps*len(par.index),
		Detail: fmt.Sprintf("%d of %d official ranks right; keys in order, none lost: %v", s.passed,
			steps*len(par.index), sorted),
	}, err
}

// isClass is a problem size with the official ranks of five keys; after a step each has shifted by
// up(key, step).
type isClass struct {
	keys, max   uint // logarithms to base 2 of the numbers of keys and of their values
	index, rank [5]int
	up          func(key, step int) (shift int)
}

func plusMinus(up int, plus, minus int) func(int, int) int {
	return func(key, step int) int {
		if key <= up {
			return step + plus
		}
		return -(step + minus)
	}
}

var isClasses = map[Class]isClass{
	'S': {16, 11, [5]int{48427, 17148, 23627, 62548, 4431}, [5]int{0, 18, 346, 64917, 65463}, plusMinus(2, 0, 0)},
	'W': {20, 16, [5]int{357773, 934767, 875723, 898999, 404505}, [5]int{1249, 11698, 1039987, 1043896, 1048018}, plusMinus(1, -2, 0)},
	'A': {23, 19, [5]int{2112377, 662041, 5336171, 3642833, 4250760}, [5]int{104, 17523, 123928, 8288932, 8388264}, plusMinus(2, -1, -1)},
	'B': {25, 21, [5]int{41869, 812306, 5102857, 18232239, 26860214}, [5]int{33422937, 10244, 59149, 33135281, 99},
		func(key, step int) int {
			if key == 1 || key == 2 || key == 4 {
				return step
			}
			return -step
		}},
	'C': {27, 23, [5]int{44172927, 72999161, 74326391, 129606274, 21736814}, [5]int{61147, 882988, 266290, 133997595, 133525895}, plusMinus(2, 0, 0)},
}

type is struct {
	par                   isClass
	passed                int // official ranks that were right
	w                     *mmpi.Comm
	n, max                int     // keys of all ranks; keys are 0 … max-1
	keys                  []int32 // this rank's, in their first order
	buckets               int
	mine                  []int32 // the keys of this rank's range, after the exchange
	lo                    int     // its first key value
	count                 []int32 // after a step: how many of mine are not above each value from lo
	send, recv            []int32
	scount, sdispl        []int
	rcount, rdispl        []int
	bucketSize, bucketSum []int64
	next                  []int32 // where the next key of each bucket goes
	before                int64   // keys of all ranks that are smaller than lo
	shift                 uint
}

func newIS(w *mmpi.Comm, par isClass) *is {
	n, maxKey := 1<<par.keys, 1<<par.max
	s := &is{par: par, w: w, n: n, max: maxKey, buckets: min(1024, maxKey)}
	s.shift = uint(log2(maxKey / s.buckets))
	size := w.Size()
	local := n / size
	g := newRandom(314159265)
	g.skip(4 * uint64(local) * uint64(w.Rank()))
	s.keys = make([]int32, local)
	for i := range s.keys {
		x := g.next()
		x += g.next()
		x += g.next()
		x += g.next()
		s.keys[i] = int32(float64(maxKey/4) * x)
	}
	s.send = make([]int32, local)
	s.scount, s.sdispl = make([]int, size), make([]int, size)
	s.rcount, s.rdispl = make([]int, size), make([]int, size)
	s.next = make([]int32, s.buckets)
	s.bucketSize, s.bucketSum = make([]int64, s.buckets), make([]int64, s.buckets)
	return s
}

// step ranks all keys once, after changing two of them so that no step repeats the one before.
func (s *is) step(i int) error {
	if s.w.Rank() == 0 {
		s.keys[i], s.keys[i+10] = int32(i), int32(s.max-i)
	}
	tests := make([]int32, len(s.par.index)) // the keys with known ranks
	for j, at := range s.par.index {
		if at/len(s.keys) == s.w.Rank() {
			tests[j] = s.keys[at%len(s.keys)]
		}
	}
	if err := mmpi.Allreduce(s.w, nil, tests, mmpi.Max); err != nil {
		return err
	}
	clear(s.bucketSize)
	for _, k := range s.keys {
		s.bucketSize[k>>s.shift]++
	}
	if err := mmpi.Allreduce(s.w, s.bucketSize, s.bucketSum, mmpi.Sum); err != nil {
		return err
	}
	// Cut the buckets into one run per rank, of about n/size keys each.
	owner := make([]int, s.buckets)
	first := make([]int, s.w.Size()+1)
	r, sum := 0, int64(0)
	for b, c := range s.bucketSum {
		for r < s.w.Size()-1 && sum >= int64(r+1)*int64(s.n)/int64(s.w.Size()) {
			r++
			first[r] = b
		}
		owner[b] = r
		sum += c
	}
	for r++; r <= s.w.Size(); r++ {
		first[r] = s.buckets
	}
	clear(s.scount)
	for b, c := range s.bucketSize {
		s.scount[owner[b]] += int(c)
	}
	prefix(s.scount, s.sdispl)
	// In order of buckets, which is in order of owners too; and keys of one bucket beside each
	// other are counted in cache later.
	next, sum32 := s.next[:s.buckets], int32(0)
	for b, c := range s.bucketSize {
		next[b] = sum32
		sum32 += int32(c)
	}
	for _, k := range s.keys {
		b := k >> s.shift
		s.send[next[b]] = k
		next[b]++
	}
	if err := s.exchange(); err != nil {
		return err
	}
	s.before = 0
	for _, c := range s.bucketSum[:first[s.w.Rank()]] {
		s.before += c
	}
	s.lo = first[s.w.Rank()] << s.shift
	hi := first[s.w.Rank()+1] << s.shift
	if cap(s.count) < hi-s.lo {
		s.count = make([]int32, hi-s.lo)
	}
	s.count = s.count[:hi-s.lo]
	clear(s.count)
	count, lo := s.count, int32(s.lo)
	for _, k := range s.mine {
		count[k-lo]++
	}
	below := int32(0) // turns numbers into ranks among this rank's keys
	for i, c := range count {
		below += c
		count[i] = below
	}
	return s.check(i, tests, hi)
}

// exchange gives every rank the keys of its buckets.
func (s *is) exchange() error {
	if s.w.Size() == 1 {
		s.mine = s.send
		return nil
	}
	if err := mmpi.Alltoall(s.w, s.scount, s.rcount); err != nil {
		return err
	}
	total := prefix(s.rcount, s.rdispl)
	if cap(s.recv) < total {
		s.recv = make([]int32, total+total/4)
	}
	s.mine = s.recv[:total]
	if err := mmpi.Alltoallv(s.w, s.send, s.scount, s.sdispl, s.mine, s.rcount, s.rdispl); err != nil {
		return err
	}
	return nil
}

// check compares the ranks of the five test keys after a step with the official ones.
func (s *is) check(step int, tests []int32, hi int) error {
	right := []int64{0}
	for j, k := range tests {
		if below := int(k) - 1; below >= s.lo && below < hi || k == 0 && s.w.Rank() == 0 {
			rank := s.before
			if k > 0 {
				rank += int64(s.count[below-s.lo])
			}
			if rank == int64(s.par.rank[j]+s.par.up(j, step)) {
				right[0]++
			}
		}
	}
	err := mmpi.Allreduce(s.w, nil, right, mmpi.Sum)
	s.passed += int(right[0])
	return err
}

// sorted makes the full verification: it places the keys by their ranks, then compares neighbours,
// also across ranks, and counts.
func (s *is) sorted() (bool, error) {
	place := append([]int32(nil), s.count...)
	out := make([]int32, len(s.mine))
	for _, k := range s.mine {
		place[int(k)-s.lo]--
		out[place[int(k)-s.lo]] = k
	}
	bad := 0.0
	for i := 1; i < len(out); i++ {
		if out[i-1] > out[i] {
			bad++
		}
	}
	edges := []int32{int32(s.max), -1}
	if len(out) > 0 {
		edges = []int32{out[0], out[len(out)-1]}
	}
	all := make([]int32, 2*s.w.Size())
	if err := mmpi.Allgather(s.w, edges, all); err != nil {
		return false, err
	}
	last := int32(-1)
	for r := range s.w.Size() {
		if lo, hi := all[2*r], all[2*r+1]; hi >= 0 {
			if lo < last {
				bad++
			}
			last = hi
		}
	}
	v := []float64{bad, float64(len(out))}
	err := mmpi.Allreduce(s.w, nil, v, mmpi.Sum)
	return v[0] == 0 && int(v[1]) == s.n, err
}

func prefix(counts, displs []int) (sum int) {
	for i, c := range counts {
		displs[i] = sum
		sum += c
	}
	return sum
}

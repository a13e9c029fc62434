package collectives

// op starts one operation; a round has several.
type op func() (Request, error)

// round returns a Round that starts all its operations, even if some give errors, and waits for
// all.
func round(ops ...op) Round {
	return func() ([]Request, error) {
		var b batch
		for _, o := range ops {
			b.add(o())
		}
		return b.reqs, b.err
	}
}

// step returns a Round that starts the one operation o.
func step(o op) Round {
	return func() ([]Request, error) {
		r, err := o()
		if r == nil {
			return nil, err
		}
		return []Request{r}, err
	}
}

// compute returns a Round that calls f and starts no operation.
func compute(f func() error) Round {
	return func() ([]Request, error) { return nil, f() }
}

// batch collects the requests that a round starts.
type batch struct {
	reqs []Request
	err  error
}

func (b *batch) add(r Request, err error) {
	if r != nil {
		b.reqs = append(b.reqs, r)
	}
	if b.err == nil {
		b.err = err
	}
}

// stage is one step for every segment of a pipelined message.
type stage struct {
	start func(seg int, b *batch)
	// depth is the number of rounds for which a segment stays in this stage, and so the number of
	// segments in it at a time, at least 1. After that its operations must have finished, and the
	// next stage begins with it.
	depth int
}

// pipeline returns a schedule that takes n segments through the stages. Segment i enters stage k
// after its stage k-1. The order of all starts is fixed, so stages may use native collectives if
// all local processes have the same stages with the same depths. Depths are reduced to n. slots
// returns the largest number of segments under way.
func pipeline(n int, stages ...stage) Schedule {
	type running struct {
		stage
		lag  int // rounds between a segment's entry into the pipeline and the start of this stage
		reqs [][]Request
	}
	run, lag := make([]running, len(stages)), 0
	for k, s := range stages {
		s.depth = min(s.depth, n)
		run[k] = running{s, lag, make([][]Request, s.depth)}
		lag += s.depth
	}
	var out Schedule
	for t := range n + lag - 1 {
		out = append(out, func() ([]Request, error) {
			var due batch
			// Later stages go first, because they free memory and let other segments proceed.
			for k := len(run) - 1; k >= 0; k-- {
				r := &run[k]
				if seg := t - r.lag; seg >= 0 && seg < n {
					var b batch
					r.start(seg, &b)
					r.reqs[seg%r.depth] = b.reqs
					if due.err == nil {
						due.err = b.err
					}
				}
			}
			for k := range run {
				r := &run[k]
				if seg := t + 1 - r.lag - r.depth; seg >= 0 && seg < n {
					due.reqs = append(due.reqs, r.reqs[seg%r.depth]...)
				}
			}
			return due.reqs, due.err
		})
	}
	return out
}

// slots returns the number of segments between the start of the first and the end of the last of
// the stages.
func slots(n int, depths ...int) int {
	sum := 0
	for _, d := range depths {
		sum += min(d, n)
	}
	return min(n, sum)
}

// segments cuts total units into equal segments; the last one may be shorter.
type segments struct {
	total, size, n int
}

// cut returns segments of about t.Segment bytes of units of the given size.
func cut(total, unit int, t Tuning) segments {
	if total == 0 {
		return segments{}
	}
	n := max(1, (total*unit+t.Segment-1)/t.Segment)
	size := (total + n - 1) / n
	return segments{total, size, (total + size - 1) / size}
}

// count returns the number of units in segment i.
func (s segments) count(i int) int { return min(s.size, s.total-i*s.size) }

// of returns segment i of a buffer of units.
func (s segments) of(b []byte, i, unit int) []byte {
	if b == nil {
		return nil
	}
	from := i * s.size * unit
	return b[from : from+s.count(i)*unit]
}

// ring has memory for the segments under way.
type ring struct {
	b            []byte
	bytes, slots int
}

func (e *env) newRing(bytes, slots int) ring { return ring{e.Scratch(bytes * slots), bytes, slots} }

func (r ring) at(i, n int) []byte {
	from := i % r.slots * r.bytes
	return r.b[from : from+n]
}

// same reports whether two buffers begin at the same address.
func same(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// fold computes parts[0] op parts[1] op … into the last part.
func (e *env) fold(parts [][]byte, count int) error {
	acc := parts[len(parts)-1]
	for k := len(parts) - 2; k >= 0; k-- {
		if err := e.Reduce(parts[k], acc, count); err != nil {
			return err
		}
	}
	return nil
}

// foldTo computes the same for operands that are one after the other.
func (e *env) foldTo(to, operands []byte, count int) error {
	var parts [][]byte
	for n := count * e.extent; len(operands) > 0; operands = operands[n:] {
		parts = append(parts, operands[:n])
	}
	err := e.fold(parts, count)
	copy(to, parts[len(parts)-1])
	return err
}

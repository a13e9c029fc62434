package collectives

// op starts one operation; a step of a round.
type op func() (Request, error)

// round starts all its operations, whatever errors some of them give, and waits for all.
func round(ops ...op) Round {
	return func() ([]Request, error) {
		var b batch
		for _, o := range ops {
			b.add(o())
		}
		return b.reqs, b.err
	}
}

// step is a round of one operation.
func step(o op) Round {
	return func() ([]Request, error) {
		r, err := o()
		if r == nil {
			return nil, err
		}
		return []Request{r}, err
	}
}

// compute is a round without operations.
func compute(f func() error) Round {
	return func() ([]Request, error) { return nil, f() }
}

// batch collects what a round starts.
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

// stage is one step that every segment of a pipelined message goes through.
type stage struct {
	start func(seg int, b *batch)
	// depth is how many rounds a segment stays in this stage, and so how many segments are in it
	// at a time. After so many its operations must be over, and the next stage begins with it. At
	// least 1.
	depth int
}

// pipeline takes n segments through the stages: segment i enters stage k when its stage k-1 is
// over. The order of all starts is fixed, so stages may use native collectives if all local
// processes have the same stages with the same depths. Depths are cut to n; slots says how many
// segments are under way at most.
func pipeline(n int, stages ...stage) Schedule {
	type running struct {
		stage
		lag  int // rounds after a segment's entry into the pipeline that this stage starts
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
			// Later stages first: what is furthest frees memory and brings others forward.
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

// slots gives the number of segments between the start of the first and the end of the last of the
// stages.
func slots(n int, depths ...int) int {
	sum := 0
	for _, d := range depths {
		sum += min(d, n)
	}
	return min(n, sum)
}

// segments cuts total units into equal segments (the last may be shorter).
type segments struct {
	total, size, n int
}

// cut makes segments of about t.Segment bytes of units of the given size.
func cut(total, unit int, t Tuning) segments {
	if total == 0 {
		return segments{}
	}
	n := max(1, (total*unit+t.Segment-1)/t.Segment)
	size := (total + n - 1) / n
	return segments{total, size, (total + size - 1) / size}
}

// count gives the units in segment i.
func (s segments) count(i int) int { return min(s.size, s.total-i*s.size) }

// of gives segment i of a buffer of units.
func (s segments) of(b []byte, i, unit int) []byte {
	if b == nil {
		return nil
	}
	from := i * s.size * unit
	return b[from : from+s.count(i)*unit]
}

// ring holds the segments that are under way.
type ring struct {
	b            []byte
	bytes, slots int
}

func (e *env) newRing(bytes, slots int) ring { return ring{e.Scratch(bytes * slots), bytes, slots} }

func (r ring) at(i, n int) []byte {
	from := i % r.slots * r.bytes
	return r.b[from : from+n]
}

// same reports whether two buffers begin at the same place.
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

// foldTo computes the same of operands that lie one behind the other.
func (e *env) foldTo(to, operands []byte, count int) error {
	var parts [][]byte
	for n := count * e.extent; len(operands) > 0; operands = operands[n:] {
		parts = append(parts, operands[:n])
	}
	err := e.fold(parts, count)
	copy(to, parts[len(parts)-1])
	return err
}

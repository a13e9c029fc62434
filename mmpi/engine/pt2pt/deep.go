package pt2pt

import "github.com/leidenzipper/zipper/internal/list"

// deep finds the entries of a long queue with a given pattern (source and tag) without a walk
// through the queue. It has lists by the pattern's hash, each in the queue's order. The zero value
// is for a short queue, which is walked through.
type deep[T any] struct {
	on    bool           // whether the queue is a long one
	lists []list.List[T] // the entries by hash; a power of two of lists
	shift int            // the bits of a hash that the index of its list leaves out
}

// grown makes room for a queue of n entries if it has become long or has outgrown its lists. It
// reports whether it did; then the caller must insert every entry again.
func (d *deep[T]) grown(n int) bool {
	if n <= shortQueue || d.on && n <= len(d.lists) {
		return false
	}
	d.on = true
	if n <= len(d.lists) { // kept from the last time that the queue was long
		return true
	}
	size, bits := 1, 0
	for size < growth*n {
		size, bits = size<<1, bits+1
	}
	d.lists, d.shift = make([]list.List[T], size), 64-bits
	return true
}

// empty ends the search by pattern once the queue is empty. The lists stay for the next time if
// they are few.
func (d *deep[T]) empty() {
	if d.on = false; len(d.lists) > keptLists {
		d.lists = nil
	}
}

// of returns the list that has all entries with a pattern, among others.
func (d *deep[T]) of(source, tag int) *list.List[T] {
	const golden = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio (Knuth, volume 3, 6.4)
	return &d.lists[(uint64(uint32(source))<<32|uint64(uint32(tag)))*golden>>d.shift]
}

// kindOf returns the kind of a receive's pattern, which says which of its two parts are wildcards.
func kindOf(source, tag int) (kind int) {
	if source == AnySource {
		kind = 1
	}
	if tag == AnyTag {
		kind += 2
	}
	return kind
}

// patternOf returns the pattern of a kind that takes an envelope.
func patternOf(kind, source, tag int) (int, int) {
	if kind&1 != 0 {
		source = AnySource
	}
	if kind&2 != 0 {
		tag = AnyTag
	}
	return source, tag
}

// sort puts a posted receive into the list of its pattern.
func (q *matchQueue) sort(r *Request) {
	r.sorted.Of = r
	q.byPattern.of(r.source, r.tag).Push(&r.sorted)
	q.patterns[kindOf(r.source, r.tag)]++
}

// postDeep adds a posted receive to the lists of a queue that is long or becomes long.
func (q *matchQueue) postDeep(r *Request) {
	if !q.byPattern.grown(q.receives) {
		q.sort(r)
		return
	}
	q.patterns = [4]int{}
	for n := q.posted.First(); n != nil; n = n.Next() {
		q.sort(n.Of)
	}
}

func (q *matchQueue) unpostDeep(r *Request) {
	q.byPattern.of(r.source, r.tag).Remove(&r.sorted)
	q.patterns[kindOf(r.source, r.tag)]--
	if q.receives == 0 {
		q.byPattern.empty()
	}
}

// earliest returns the first posted receive of a long queue that takes the envelope: the earliest
// among the first receives of each kind of pattern.
func (q *matchQueue) earliest(source, tag int) (found *Request) {
	for kind, n := range q.patterns {
		if n == 0 {
			continue
		}
		s, t := patternOf(kind, source, tag)
		for n := q.byPattern.of(s, t).First(); n != nil; n = n.Next() {
			if r := n.Of; r.source == s && r.tag == t {
				if found == nil || r.order < found.order {
					found = r
				}
				break
			}
		}
	}
	return found
}

// sortMessage puts an unexpected message into a list for each pattern but the one that takes all.
func (q *matchQueue) sortMessage(m *message) {
	for kind := range m.sorted {
		n := &m.sorted[kind]
		n.Of = m
		q.byEnvelope[kind].of(patternOf(kind, m.source, m.tag)).Push(n)
	}
}

// keepDeep adds an unexpected message to the lists of a queue that is long or becomes long.
func (q *matchQueue) keepDeep(m *message) {
	grown := false
	for kind := range q.byEnvelope {
		grown = q.byEnvelope[kind].grown(q.messages)
	}
	if !grown {
		q.sortMessage(m)
		return
	}
	for n := q.unexpected.First(); n != nil; n = n.Next() {
		q.sortMessage(n.Of)
	}
}

func (q *matchQueue) dropDeep(m *message) {
	for kind := range q.byEnvelope {
		q.byEnvelope[kind].of(patternOf(kind, m.source, m.tag)).Remove(&m.sorted[kind])
		if q.messages == 0 {
			q.byEnvelope[kind].empty()
		}
	}
}

// lookDeep returns the first unexpected message of a long queue that a pattern takes.
func (q *matchQueue) lookDeep(source, tag int) *message {
	kind := kindOf(source, tag)
	if kind == len(q.byEnvelope) {
		return q.unexpected.First().Of
	}
	for n := q.byEnvelope[kind].of(source, tag).First(); n != nil; n = n.Next() {
		if m := n.Of; covers(source, tag, m.source, m.tag) {
			return m
		}
	}
	return nil
}

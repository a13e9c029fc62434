package pt2pt

import "testing"

// TestRequestTakesOnlyLegalStates checks that a request takes the states that may follow and no
// other, and that it is counted while it keeps the engine busy.
func TestRequestTakesOnlyLegalStates(t *testing.T) {
	for from := range state(len(legal)) {
		for next := range state(len(legal)) {
			allowed := legal[from]&(1<<next) != 0
			func() {
				defer func() {
					if panicked := recover() != nil; panicked == allowed {
						t.Errorf("%v to %v: legal %v, panicked %v", from, next, allowed, panicked)
					}
				}()
				ep := &Endpoint{}
				r := &Request{state: from, comm: &Comm{ep: ep}}
				if r.needsPolling() {
					ep.active++
				}
				r.to(next)
				if (ep.active == 1) != r.needsPolling() || r.state != next {
					t.Errorf("%v to %v: %v, %d active", from, next, r.state, ep.active)
				}
			}()
		}
	}
}

// TestHandleEndsWithItsRequest checks that a handle names a request for as long as it is in use.
func TestHandleEndsWithItsRequest(t *testing.T) {
	ep := &Endpoint{}
	r := &Request{index: 2, gen: 7, state: posted}
	ep.requests = []*Request{{gen: 1}, {gen: 1}, r}
	h := r.handle()
	if ep.find(h) != r {
		t.Error("not found")
	}
	for _, wrong := range []uint64{0, 4, h + 1, h + 1<<32, h - 1<<32, 1<<32 | 1} {
		if ep.find(wrong) != nil {
			t.Errorf("%x names a request", wrong)
		}
	}
	if r.state = idle; ep.find(h) != nil {
		t.Error("found though it is over")
	}
}

// TestFirstMatchInOrder checks that queues return the first match, in order.
func TestFirstMatchInOrder(t *testing.T) {
	var q matchQueue
	for _, p := range [][2]int{{3, 1}, {AnySource, 2}, {3, AnyTag}, {AnySource, AnyTag}} {
		r := &Request{source: p[0], tag: p[1]}
		r.node.Of = r
		q.post(r)
	}
	for _, c := range []struct{ source, tag, wantSource, wantTag int }{
		{3, 1, 3, 1}, {3, 2, AnySource, 2}, {3, 9, 3, AnyTag}, {5, 2, AnySource, 2}, {5, 9, AnySource, AnyTag},
	} {
		if r := q.first(c.source, c.tag); r.source != c.wantSource || r.tag != c.wantTag {
			t.Errorf("source %d, tag %d: %d, %d", c.source, c.tag, r.source, r.tag)
		}
	}
	for i, e := range [][2]int{{1, 1}, {2, 1}, {1, 2}, {1, 1}} {
		m := &message{source: e[0], tag: e[1], size: int64(i)}
		m.node.Of = m
		q.keep(m)
	}
	for _, c := range []struct{ source, tag, want int }{{1, 2, 2}, {AnySource, 1, 0}, {1, AnyTag, 3},
		{AnySource, AnyTag, 1}} {
		if m := q.take(c.source, c.tag); m == nil || int(m.size) != c.want {
			t.Errorf("source %d, tag %d: %+v, want message %d", c.source, c.tag, m, c.want)
		}
	}
	if q.look(AnySource, AnyTag) != nil {
		t.Error("a message is left")
	}
}

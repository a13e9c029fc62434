package pt2pt

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLongQueueKeepsOrder checks that a queue finds the receive or message that a walk through all
// in order would find, both while it is short and while it is long.
func TestLongQueueKeepsOrder(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		sources, tags := 1+rnd.IntN(30), 1+rnd.IntN(30)
		pattern := func(wild int) (source, tag int) { // one part in `wild` is a wildcard
			if source = rnd.IntN(sources); rnd.IntN(wild) == 0 {
				source = AnySource
			}
			if tag = rnd.IntN(tags); rnd.IntN(wild) == 0 {
				tag = AnyTag
			}
			return source, tag
		}
		var q matchQueue
		var receives []*Request
		var messages []*message
		long := 0
		for step := range 4000 {
			fills := step/500%2 == 0 // the queues become long, then short again
			if (rnd.IntN(3) > 0) == fills {
				source, tag := pattern(20)
				r := &Request{source: source, tag: tag}
				r.node.Of = r
				q.post(r)
				receives = append(receives, r)
				m := &message{source: rnd.IntN(sources), tag: rnd.IntN(tags)}
				m.node.Of = m
				q.keep(m)
				messages = append(messages, m)
			}
			if q.byPattern.on && q.byEnvelope[2].on {
				long++
			}
			source, tag := rnd.IntN(sources), rnd.IntN(tags)
			i := slices.IndexFunc(receives, func(r *Request) bool { return covers(r.source, r.tag, source, tag) })
			switch r := q.first(source, tag); {
			case i < 0 && r != nil || i >= 0 && r != receives[i]:
				t.Fatalf("seed %d, step %d: source %d, tag %d meets %v, not receive %d of %d", seed, step, source, tag,
					r, i, len(receives))
			case r != nil && rnd.IntN(2) == 0:
				q.unpost(r)
				receives = slices.Delete(receives, i, i+1)
			}
			source, tag = pattern(4)
			i = slices.IndexFunc(messages, func(m *message) bool { return covers(source, tag, m.source, m.tag) })
			switch m := q.look(source, tag); {
			case i < 0 && m != nil || i >= 0 && m != messages[i]:
				t.Fatalf("seed %d, step %d: source %d, tag %d takes %v, not message %d of %d", seed, step, source, tag,
					m, i, len(messages))
			case m != nil && rnd.IntN(2) == 0:
				q.drop(m)
				messages = slices.Delete(messages, i, i+1)
			}
			if !fills && len(receives) > 0 { // from anywhere, as cancelling does
				i := rnd.IntN(len(receives))
				q.unpost(receives[i])
				receives = slices.Delete(receives, i, i+1)
			}
			if !fills && len(messages) > 0 {
				i := rnd.IntN(len(messages))
				q.drop(messages[i])
				messages = slices.Delete(messages, i, i+1)
			}
		}
		if q.receives != len(receives) || q.messages != len(messages) {
			t.Fatalf("seed %d: counts %d receives, %d messages of %d and %d", seed, q.receives, q.messages,
				len(receives), len(messages))
		}
		if sources*tags > 300 && long == 0 {
			t.Errorf("seed %d: the queues were never long", seed)
		}
	}
}

// BenchmarkMatching measures the cost of a message in a queue with many entries: a receive is
// posted, or a message kept, and later found in a given order and taken out.
func BenchmarkMatching(b *testing.B) {
	for _, depth := range []int{1, 4, 16, 32, 64, 128, 1024, 100_000} {
		for _, order := range []string{"forward", "reverse", "shuffled"} {
			tags := make([]int, depth)
			for i := range tags {
				tags[i] = i
			}
			switch order {
			case "reverse":
				slices.Reverse(tags)
			case "shuffled":
				rand.New(rand.NewPCG(1, 2)).Shuffle(depth, func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
			}
			b.Run(fmt.Sprint("posted/", depth, "/", order), func(b *testing.B) {
				var q matchQueue
				receives := make([]Request, depth)
				used := processorTime(b)
				n := 0
				for ; n < b.N; n += depth {
					for tag := range receives {
						r := &receives[tag]
						r.tag, r.node.Of = tag, r
						q.post(r)
					}
					for _, tag := range tags {
						q.unpost(q.first(0, tag))
					}
				}
				b.ReportMetric(float64(processorTime(b)-used)/float64(n), "cpu-ns/op")
			})
			b.Run(fmt.Sprint("unexpected/", depth, "/", order), func(b *testing.B) {
				var q matchQueue
				messages := make([]message, depth)
				used := processorTime(b)
				n := 0
				for ; n < b.N; n += depth {
					for tag := range messages {
						m := &messages[tag]
						m.tag, m.node.Of = tag, m
						q.keep(m)
					}
					for _, tag := range tags {
						q.take(0, tag)
					}
				}
				b.ReportMetric(float64(processorTime(b)-used)/float64(n), "cpu-ns/op")
			})
		}
	}
}

func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

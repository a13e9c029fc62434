package contend

import (
	"runtime"
	"time"

	"github.com/leidenzipper/zipper/bench/transfer"
	"github.com/leidenzipper/zipper/contention/calibrate"
)

// links measures the processor time of links that is the machine's own work: the time of all
// processors meanwhile, without the calls of both ends. The kernel does that work in the time of
// any process.
func (m *measurer) links(out *calibrate.Samples) (l calibrate.Links, err error) {
	a, b := out.Clusters[0], out.Clusters[1]
	rest := func() error { time.Sleep(busyTime); return nil }
	if m.background, _, err = m.busy(rest, 1); err != nil {
		return l, err
	}
	small, err := m.small(a.Hosts[0], b.Hosts[0])
	if err != nil {
		return l, err
	}
	large, err := m.large(a.Hosts[0], a.Hosts[1])
	c := a.Costs[0]
	l.Packet = max(0, (small-smallCalls*c.Call-smallWakings*c.Switch)/2)
	l.Byte = max(0, large-2*c.Byte-(l.Packet+2*c.Call)/float64(m.site.Packet))
	return l, err
}

// large returns the time of all processors for a byte of a long message over one link, in seconds.
func (m *measurer) large(from, to string) (float64, error) {
	run := func(bytes, times int) (float64, int, error) {
		list := []transfer.Message{{From: from, To: to, Via: transfer.Direct, Bytes: bytes}}
		return m.busy(func() error { _, err := m.site.Session.Run(list); return err }, times)
	}
	long, n, err := run(m.Bytes, 0)
	if err != nil {
		return 0, err
	}
	short, _, err := run(1, n) // the time to start and to end it
	return (long - short) / float64(n) / float64(m.Bytes), err
}

// small returns the time of all processors for a small message through the first forwarder, in
// seconds.
func (m *measurer) small(a, b string) (float64, error) {
	var steps []transfer.Step
	for i := range toAndFro {
		s := transfer.Step{Message: transfer.Message{From: a, To: b, Bytes: 1}}
		if i%2 == 1 {
			s.From, s.To = b, a
		}
		if i > 0 {
			s.After = []int{i - 1}
		}
		steps = append(steps, s)
	}
	play := func(k int) (float64, int, error) {
		return m.busy(func() error { _, err := m.site.Session.Play(steps[:k]); return err }, 0)
	}
	long, n, err := play(toAndFro)
	if err != nil {
		return 0, err
	}
	short, k, err := play(toAndFro / 10)
	if err != nil {
		return 0, err
	}
	return (long/float64(n) - short/float64(k)) / (toAndFro - toAndFro/10), nil
}

// busy returns the time that processors were not idle while do was called n times, without the time
// that they are busy in any case. If n is 0, it calls do for busyTime. The kernel counts idle time
// exactly, and reports it in steps of 1/userHz.
func (m *measurer) busy(do func() error, n int) (seconds float64, times int, err error) {
	before, err := machine()
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	for times == 0 || times < n || n == 0 && time.Since(begin) < busyTime {
		if err := do(); err != nil {
			return 0, 0, err
		}
		times++
	}
	took := time.Since(begin)
	after, err := machine()
	seconds = took.Seconds()*float64(runtime.NumCPU()) - (after.rest - before.rest)
	return seconds - m.background*took.Seconds()/busyTime.Seconds(), times, err
}

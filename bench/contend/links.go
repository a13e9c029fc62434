package contend

import (
	"runtime"
	"time"

	"github.com/leidenzipper/zipper/bench/transfer"
	"github.com/leidenzipper/zipper/contention/calibrate"
)

// links is what the machine's processors take for links that are its own work: what all of them had
// to do meanwhile, without the calls of both ends. A kernel does it in the time of whoever runs.
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

// large is what all processors take for a byte of a long message over one link, seconds.
func (m *measurer) large(from, to string) (float64, error) {
	run := func(bytes, times int) (float64, int, error) {
		list := []transfer.Message{{From: from, To: to, Via: transfer.Direct, Bytes: bytes}}
		return m.busy(func() error { _, err := m.site.Session.Run(list); return err }, times)
	}
	long, n, err := run(m.Bytes, 0)
	if err != nil {
		return 0, err
	}
	short, _, err := run(1, n) // to start and to end it
	return (long - short) / float64(n) / float64(m.Bytes), err
}

// small is what all processors take for a small message through the first forwarder, seconds.
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

// busy is how long processors were not idle while what was done n times, beside what they do
// anyway; 0: as often as it takes for busyTime. The kernel counts idle time exactly, and tells of
// it in steps of 1/userHz.
func (m *measurer) busy(what func() error, n int) (seconds float64, times int, err error) {
	before, err := machine()
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	for times == 0 || times < n || n == 0 && time.Since(begin) < busyTime {
		if err := what(); err != nil {
			return 0, 0, err
		}
		times++
	}
	took := time.Since(begin)
	after, err := machine()
	seconds = took.Seconds()*float64(runtime.NumCPU()) - (after.rest - before.rest)
	return seconds - m.background*took.Seconds()/busyTime.Seconds(), times, err
}

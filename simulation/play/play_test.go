package play

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/contention/pattern"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/predict"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

const lab = `
name: lab
clusters:
  - {name: a, hosts: 4, nic: 20mbit, latency: 0.25ms}
  - {name: b, hosts: 4, nic: 20mbit, latency: 0.25ms}
zippers:
  - {name: z1, ports: {a: 20mbit, b: 20mbit}, through: 0.25ms, socket: 393216}
  - {name: z2, ports: {a: 20mbit, b: 20mbit}, through: 0.25ms, socket: 393216}
network: {burst: 16KiB}
`

const row = `
clusters:
  - {name: a, hosts: 2, nic: 1gbit, latency: 0.1ms}
  - {name: b, hosts: 2, nic: 1gbit, latency: 0.1ms}
  - {name: c, hosts: 2, nic: 1gbit, latency: 0.1ms}
zippers:
  - {name: z1, ports: {a: 1gbit, b: 1gbit}}
  - {name: z2, ports: {b: 1gbit, c: 100mbit}}
`

func read(t *testing.T, text string) *platform.Platform {
	p, err := platform.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func messages(t *testing.T, p *platform.Platform, text string) []platform.Message {
	list, err := pattern.Read(strings.NewReader(text), p.Places())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestTimesByHand checks the times of messages that can be calculated by hand.
func TestTimesByHand(t *testing.T) {
	for _, c := range []struct {
		what, platform, pattern string
		want                    []float64 // finish times in seconds
	}{
		{"a message through a zipper", lab, "a1 b1 8MB", []float64{3.2}},
		{"one inside a cluster", lab, "a1 a2 8MB", []float64{3.2}},
		{"two into one host, by both zippers", lab, "a1 b1 8MB\na2 b1 8MB", []float64{6.4, 6.4}},
		{"one after the other", lab, "a1 b1 8MB name=x\nb1 a2 4MB after=x", []float64{3.2, 4.8}},
		{"both directions", lab, "a1 b1 8MB\nb1 a1 8MB", []float64{3.2, 3.2}},
		{"later", lab, "a1 b1 8MB start=2s", []float64{5.2}},
		{"two hops, the slow one last", row, "a1 c1 10MB", []float64{0.8}},
		{"from a zipper's host", lab, "z1 a1 8MB", []float64{3.2}},
		{"a small one", lab, "a1 b1 1B", []float64{0.00025}},
	} {
		p := read(t, c.platform)
		r, err := Run(p, messages(t, p, c.pattern), Options{})
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		for i, m := range r.Report.Messages {
			if e := m.Finish/c.want[i] - 1; math.Abs(e) > 0.05 {
				t.Errorf("%s: message %d arrived after %.4f s, want about %v", c.what, i, m.Finish, c.want[i])
			}
		}
	}
}

// TestSameAgain checks that two runs with the same seed have the same events, faults included.
func TestSameAgain(t *testing.T) {
	p := read(t, lab)
	list, err := pattern.Generate("random:d=2,size=300kB", p.Places())
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Seed: 3, Rate: 20}
	a, err := Run(p, list, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Run(p, list, o)
	if err != nil {
		t.Fatal(err)
	}
	if a.Steps != b.Steps || a.Report.Makespan != b.Report.Makespan || len(a.Faults) == 0 {
		t.Errorf("%d events in %v s, then %d in %v s; %d faults", a.Steps, a.Report.Makespan, b.Steps, b.Report.Makespan,
			len(a.Faults))
	}
}

// TestFaults checks that lost data is sent again and takes longer, and that killing a rank ends the
// job.
func TestFaults(t *testing.T) {
	p := read(t, lab)
	list := messages(t, p, "a1 b1 8MB\na2 b3 8MB")
	whole, err := Run(p, list, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"cut@1s=a1", "restart@1s/200ms=z1", "pause@1s/300ms=b1"} {
		f, err := ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(p, list, Options{Faults: []Fault{f}})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if len(r.Faults) != 1 || r.Report.Makespan < 0.99*whole.Report.Makespan {
			t.Errorf("%s: %v, %.3f s instead of %.3f", text, r.Faults, r.Report.Makespan, whole.Report.Makespan)
		}
		var b bytes.Buffer
		r.Stats(&b)
		if !strings.Contains(b.String(), "a -> b: 1 messages") || !strings.Contains(b.String(), "fault") {
			t.Errorf("%s: the statistics are:\n%s", text, b.String())
		}
	}
	if _, err := Run(p, list, Options{Faults: []Fault{{Kind: "kill", At: time.Second, Who: "b1"}}}); err == nil {
		t.Error("a rank was killed, and the run did not fail")
	}
	for _, bad := range []string{"cut", "cut@", "cut@1", "burn@1s", "cut@-1s", "cut@1s/x"} {
		if _, err := ParseFault(bad); err == nil {
			t.Errorf("fault %q was accepted", bad)
		}
	}
}

// TestRankComputesBeforeReceive checks that a recorded rank computes before it receives a message,
// and that ranks which do not depend on it do not wait meanwhile.
func TestRankComputesBeforeReceive(t *testing.T) {
	p := read(t, "clusters:\n  - {name: a, hosts: 2, nic: 100gbit}\n  - {name: b, hosts: 1, nic: 100gbit}\n"+
		"zippers:\n  - {name: z, ports: {a: 100gbit, b: 100gbit}}\n")
	const s = int64(time.Second)
	recorded := &trace.Trace{Clusters: []trace.Cluster{{Name: "a", Ranks: 2}, {Name: "b", Ranks: 1}},
		Messages: []trace.Message{ // rank 2 computes 3 s before each receive from rank 0; recorded waits do not matter
			{Start: 1 * s, End: 13 * s, Src: 0, Dst: 2, Bytes: 100, SrcUsed: 1 * s, DstUsed: 3 * s},
			{Start: 2 * s, End: 17 * s, Src: 0, Dst: 2, Bytes: 100, SrcUsed: 2 * s, DstUsed: 6 * s},
			{Start: 3 * s, End: 4 * s, Src: 0, Dst: 1, Bytes: 100, SrcUsed: 3 * s, DstUsed: 1 * s},
			{Start: 18 * s, End: 19 * s, Src: 2, Dst: 1, Bytes: 100, SrcUsed: 7 * s, DstUsed: 1 * s},
		}}
	places, ok := pattern.Recorded(recorded, p)
	if !ok {
		t.Fatal("the platform has no room for the ranks")
	}
	for compute, want := range map[int64][]float64{1: {1, 2, 3, 7}, 2: {2, 4, 6, 14}, 0: {0, 0, 0, 0}} {
		list, err := pattern.Replay(recorded, places, big.NewRat(compute, 1))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(p, list, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range r.Report.Messages {
			if math.Abs(m.Start-want[i]) > 0.01 || m.Finish-m.Start > 0.01 {
				t.Errorf("times %d: message %d began at %.3f s and took %.3f, want %.3f", compute, i, m.Start, m.Finish-m.Start,
					want[i])
			}
		}
	}
}

// TestProcessorTimeDelaysMessages checks that processor time delays messages on a host with one
// core.
func TestProcessorTimeDelaysMessages(t *testing.T) {
	fast := "clusters:\n  - {name: a, hosts: 2, nic: 100gbit}\n  - {name: b, hosts: 2, nic: 100gbit}\n" +
		"zippers:\n  - {name: z, ports: {a: 100gbit, b: 100gbit}, forwarder: {copy: 500 MB/s}}\n"
	p := read(t, fast)
	r, err := Run(p, messages(t, p, "a1 b1 100MB"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Report.Makespan; got < 0.19 || got > 0.23 {
		t.Errorf("100 MB through a forwarder that copies 500 MB/s take %.3f s", got)
	}
	if busy := r.Forwarders[0].Busy; busy < 0.9 || busy > 1.001 {
		t.Errorf("its core is busy for %.3f of the time", busy)
	}
}

// TestLong checks that the buffers of connections bound the rate over a long network, and that
// several connections carry a multiple of it, as in predict.
func TestLong(t *testing.T) {
	const text = "clusters:\n  - {name: a, hosts: 2, nic: 1gbit}\n" +
		"  - {name: wan, hosts: [nobody], nic: 1gbit, latency: 20ms, buffer: 500kB%s}\n" +
		"  - {name: b, hosts: 2, nic: 1gbit}\n" +
		"zippers:\n  - {name: z1, ports: {a: 1gbit, wan: 1gbit}}\n  - {name: z2, ports: {wan: 1gbit, b: 1gbit}}\n" +
		"network: {packet: 50kB}\n"
	// The model has no slow start, so several connections together need longer messages.
	for streams, bytes := range map[string]string{", streams: 1": "50MB", "": "150MB"} {
		p := read(t, fmt.Sprintf(text, streams))
		compare(t, "streams"+streams, p, messages(t, p, fmt.Sprintf("a1 b1 %[1]s\na2 b2 %[1]s", bytes)), 0.1)
	}
}

// TestSealed checks that the cost of encryption on the ranks' cores bounds the rate, as in predict.
func TestSealed(t *testing.T) {
	p := read(t, "clusters:\n  - {name: a, hosts: 2, nic: 10gbit, seal: 400 MB/s}\n  - {name: b, hosts: 2, nic: 10gbit}\n"+
		"zippers:\n  - {name: z, ports: {a: 10gbit, b: 10gbit}}\n")
	compare(t, "sealed", p, messages(t, p, "a1 b1 100MB\nb2 a2 100MB"), 0.1)
}

// TestTranslated checks that connections through a zipper that translates addresses share a host's
// adapter individually, as in predict.
func TestTranslated(t *testing.T) {
	p := read(t, "clusters:\n  - {name: a, hosts: 3, nic: 1gbit, latency: 50us}\n  - {name: b, hosts: 3, nic: 1gbit, latency: 50us}\n"+
		"zippers:\n  - {name: z, ports: {a: 10gbit, b: 1gbit}, relay: nat}\n")
	compare(t, "nat", p, messages(t, p, "a1 b1 50MB\na2 b2 50MB\nb3 a3 50MB"), 0.1)
	r, err := Run(p, messages(t, p, "a1 b1 50MB"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Forwarders {
		for _, x := range f.Traffic {
			if x.Bytes > 1e6 {
				t.Errorf("the forwarder has relayed %d bytes from %s to %s", x.Bytes, x.From, x.To)
			}
		}
	}
}

// TestQueueStaysShort checks that the queue in front of a slow network is kept short. Small
// messages beside large ones of the same pair take less than 1 ms, in place of the 2.8 ms of
// unbounded queues (docs/decisions/0021).
func TestQueueStaysShort(t *testing.T) {
	p := read(t, "clusters:\n  - {name: a, hosts: 1, nic: 1gbit, latency: 30us}\n"+
		"  - {name: b, hosts: 1, nic: 1gbit, latency: 30us}\nzippers:\n  - {name: z, ports: {a: 1gbit, b: 1gbit}}\n")
	const small = 50
	list := messages(t, p, strings.Repeat("a1 b1 4MiB\n", 25)+many(small, func(i int) string {
		return fmt.Sprintf("a1 b1 8B start=%.1fms\n", 300+9.3*float64(i))
	}))
	r, err := Run(p, list, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var took []float64
	for _, m := range r.Report.Messages[len(list)-small:] {
		took = append(took, m.Finish-m.Start)
	}
	slices.Sort(took)
	if took[small/2] > 1e-3 {
		t.Errorf("8 bytes take %.2g s, the median", took[small/2])
	}
}

// many returns n lines.
func many(n int, line func(int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
	}
	return b.String()
}

// compare checks that the simulation and the model predict the same finish times.
func compare(t *testing.T, what string, p *platform.Platform, list []platform.Message, within float64) {
	t.Helper()
	got, err := Run(p, list, Options{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	want, err := predict.Run(p, list, predict.Options{Sharing: "streams"})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for i, m := range got.Report.Messages {
		if e := m.Finish/want.Messages[i].Finish - 1; math.Abs(e) > within {
			t.Errorf("%s: message %d arrived after %.4f s, the model says %.4f", what, i, m.Finish, want.Messages[i].Finish)
		}
	}
}

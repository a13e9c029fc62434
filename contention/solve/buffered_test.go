package solve

import (
	"fmt"
	"math"
	"testing"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
)

// relayed returns hosts of two networks around one zipper: h0, h1 … send to d0, d1 …. All links
// have the same capacity except the zipper's, which have plenty.
func relayed(t *testing.T, capacity, window float64, pairs [][2]int) (*sharing.Network[num.Float],
	[]Transfer[num.Float]) {
	t.Helper()
	const hosts = 4
	var rs []sharing.Resource[num.Float]
	add := func(name string, capacity float64) {
		rs = append(rs, sharing.Resource[num.Float]{Name: name, Capacity: num.Float(capacity), Twin: -1})
	}
	for i := range hosts {
		add(fmt.Sprintf("h%d.out", i), capacity)
		add(fmt.Sprintf("d%d.in", i), capacity)
	}
	add("z.in", 100*capacity)
	add("z.out", 100*capacity)
	for range 2 {
		rs = append(rs, sharing.Resource[num.Float]{Name: "domain", Kind: sharing.Domain, Capacity: num.Float(capacity),
			Twin: -1})
	}
	var flows []sharing.Flow[num.Float]
	var ts []Transfer[num.Float]
	for i, p := range pairs {
		use := func(r, hop int) sharing.Use[num.Float] {
			return sharing.Use[num.Float]{Resource: r, Weight: 1, Hop: hop}
		}
		flows = append(flows, sharing.Flow[num.Float]{Name: "f", Window: num.Float(window),
			Uses: []sharing.Use[num.Float]{use(2*p[0], 1), use(2*hosts, 1), use(2*hosts+1, 2), use(2*p[1]+1, 2)},
			Hops: []sharing.Hop{{Domain: 2*hosts + 2, From: p[0], To: hosts},
				{Domain: 2*hosts + 3, From: hosts, To: p[1]}}})
		ts = append(ts, Transfer[num.Float]{Name: fmt.Sprint(p), Flow: i, Bytes: 10e6})
	}
	n, err := sharing.New(rs, flows)
	if err != nil {
		t.Fatal(err)
	}
	return n, ts
}

// TestBufferedQueue has h0 send to d0 and d1, and h1 to d0. Nothing limits h1, so twice as many of
// its bytes as of h0's arrive in the queue for d0 while both send: 1 s of h1's sending takes 1.5 s
// of d0's receiving. A window of a few pieces limits it: then all take the same time, as by
// max-min.
func TestBufferedQueue(t *testing.T) {
	pairs := [][2]int{{0, 0}, {0, 1}, {1, 0}}
	for _, c := range []struct {
		window float64
		want   []float64
	}{
		{0, []float64{2, 2, 1.5}},
		{100e6, []float64{2, 2, 1.5}},
		{200e3, []float64{2, 2, 2}},
	} {
		n, ts := relayed(t, 10e6, c.window, pairs)
		r, err := Run(n, ts, sharing.Rule[num.Float](sharing.Buffered[num.Float]{}), Options{Record: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if got := r.Finish[i].Float64(); math.Abs(got-want) > 0.05 {
				t.Errorf("window %v: %s took %.3f s, want %.2f", c.window, ts[i].Name, got, want)
			}
		}
		// d0's adapter limits h1's transfer, and h0's own limits its transfer to d1.
		for i, want := range map[int]string{1: "h0.out", 2: "d0.in"} {
			best := Share[num.Float]{}
			for _, s := range r.Limited[i] {
				if s.Time > best.Time {
					best = s
				}
			}
			if got := n.Resources[best.Limit.Resource].Name; got != want && c.window != 200e3 {
				t.Errorf("window %v: %s waits for %s, want %s", c.window, ts[i].Name, got, want)
			}
		}
	}
}

// TestBufferedAlone checks that on an idle network a transfer takes the time of its slowest link,
// for any size and number of consecutive transfers.
func TestBufferedAlone(t *testing.T) {
	n, ts := relayed(t, 10e6, 4<<20, [][2]int{{0, 0}})
	want := 0.0
	ts = ts[:0]
	for i := range 200 {
		x := Transfer[num.Float]{Name: "t", Bytes: num.Float(1 + i*i*37%100_000)}
		if i > 0 {
			x.After = []int{i - 1}
		}
		want += float64(x.Bytes) / 10e6
		ts = append(ts, x)
	}
	r, err := Run(n, ts, sharing.Rule[num.Float](sharing.Buffered[num.Float]{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Makespan.Float64(); math.Abs(got-want) > 0.01*want {
		t.Errorf("%.4f s, want %.4f", got, want)
	}
}

// TestBufferedRandom checks in random cases that everything arrives, not sooner than alone, that no
// use exceeds a capacity, and that no resource is idle while all transfers wait.
func TestBufferedRandom(t *testing.T) {
	for seed := range uint64(60) {
		n, ts := randomCase[num.Float](t, seed, 4, 40)
		for i := range n.Flows {
			f := &n.Flows[i]
			if len(f.Hops) == 1 {
				continue
			}
			f.Window = 3000
			for k, hop := range []int{1, 1, 0, 2} {
				f.Uses[k].Hop = hop
			}
		}
		r, err := Run(n, ts, sharing.Rule[num.Float](sharing.Buffered[num.Float]{}), Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range ts {
			least := ts[i].Bytes / n.Alone(ts[i].Flow)
			if took := r.Finish[i] - r.Start[i]; float64(took) < float64(least)*(1-1e-6) {
				t.Errorf("seed %d: transfer %d took %v, alone it takes %v", seed, i, took, least)
			}
			for _, p := range ts[i].After {
				if r.Start[i] < r.Finish[p] {
					t.Errorf("seed %d: transfer %d began before %d had ended", seed, i, p)
				}
			}
		}
		for k, u := range r.Used {
			if float64(u) > float64(n.Resources[k].Capacity*r.Makespan)*(1+1e-6) {
				t.Errorf("seed %d: %v units of resource %d in %v s", seed, u, k, r.Makespan)
			}
		}
	}
}

func BenchmarkBuffered(b *testing.B) {
	for _, count := range []int{1000, 20_000, 100_000} {
		n, ts := randomCase[num.Float](b, 1, 32, count)
		relay(n, ts)
		grain := 0.0
		if count > 20_000 {
			grain = 1e-2
		} else if count > 2000 {
			grain = 1e-3
		}
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			for b.Loop() {
				r, err := Run(n, ts, sharing.Rule[num.Float](sharing.Buffered[num.Float]{}), Options{Grain: grain})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(r.Events), "events")
			}
		})
	}
}

package netgauge

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"

	"github.com/leidenzipper/zipper/bench/stat"
)

// meet lets all processes continue at about the same time: each sends to rank 0, which then answers
// one after the other. Its error in time is one latency and the time of rank 0's sends.
func meet(ep Endpoint) error {
	b := make([]byte, 64)
	for r := 1; r < ep.Size(); r++ {
		if ep.Rank() == 0 {
			if err := ep.Recv(r, b); err != nil {
				return err
			}
		} else if ep.Rank() == r {
			if err := ep.Send(0, b); err != nil {
				return err
			}
		}
	}
	for r := 1; r < ep.Size(); r++ {
		if ep.Rank() == 0 {
			if err := ep.Send(r, b); err != nil {
				return err
			}
		} else if ep.Rank() == r {
			return ep.Recv(0, b)
		}
	}
	return nil
}

// exchange runs n round trips in a row from the first of a pair to the second, each answered. It
// also works over modules that lose messages, by sending again. base numbers the messages, and each
// number must be used once. It returns how many were lost.
func exchange(ep Endpoint, peer int, firstOfPair bool, b []byte, n int, base uint64) (lost int, err error) {
	for i := range uint64(n) {
		want := base + i
		if firstOfPair {
			for {
				number(b, want)
				if err := ep.Send(peer, b); err != nil {
					return lost, err
				}
				if err = recvNumber(ep, peer, b, want); err == nil {
					break
				} else if !errors.Is(err, ErrLost) {
					return lost, err
				}
				lost++
			}
			continue
		}
		for {
			err := ep.Recv(peer, b)
			if errors.Is(err, ErrLost) {
				continue
			} else if err != nil {
				return lost, err
			}
			got := read(b, want)
			if got == helloNumber {
				continue
			}
			if err := ep.Send(peer, b); err != nil { // also repeats an earlier answer
				return lost, err
			}
			if got == want {
				break
			}
		}
	}
	return lost, nil
}

func number(b []byte, n uint64) {
	if len(b) >= datagramHeader {
		binary.LittleEndian.PutUint64(b, n)
	}
}

// read returns the number in a message. Shorter messages come over reliable modules and always have
// the wanted number.
func read(b []byte, want uint64) uint64 {
	if len(b) < datagramHeader {
		return want
	}
	return binary.LittleEndian.Uint64(b)
}

func recvNumber(ep Endpoint, peer int, b []byte, want uint64) error {
	for {
		if err := ep.Recv(peer, b); err != nil {
			return err
		}
		if read(b, want) == want {
			return nil
		}
	}
}

// oneToOne is ping-pong between the halves of a random bisection, all pairs at once, with another
// bisection for each repetition (effective bisection bandwidth). With two processes it is plain
// ping-pong and works over any module.
func oneToOne() Pattern {
	return Pattern{Name: "one_to_one", About: "ping-pong of all pairs of random bisections", Run: runOneToOne}
}

func runOneToOne(ep Endpoint, o Options, clock Clock) (*Report, error) {
	rep := &Report{Columns: []string{"size (B)", "one-way median (us)", "min", "max", "ci95", "bandwidth (MB/s)"}}
	rng := rand.New(rand.NewPCG(o.Seed, 0)) // the same on every process
	base := uint64(1)
	for _, size := range o.Sizes {
		b := make([]byte, size)
		var t []float64
		for i := range o.Reps + 1 {
			perm := rng.Perm(ep.Size())
			if ep.Size() > 2 {
				if err := meet(ep); err != nil {
					return nil, err
				}
			} else {
				perm = []int{0, 1}
			}
			for k := 0; k+1 < len(perm); k += 2 {
				var peer int
				firstOfPair := false
				switch ep.Rank() {
				case perm[k]:
					peer, firstOfPair = perm[k+1], true
				case perm[k+1]:
					peer = perm[k]
				default:
					continue
				}
				at := clock.Now()
				lost, err := exchange(ep, peer, firstOfPair, b, roundTrips, base)
				if err != nil {
					return nil, err
				}
				rep.Lost += lost
				if i > 0 && lost == 0 { // the first exchange warms up
					t = append(t, clock.Since(at)/(2*roundTrips))
				}
			}
			base += roundTrips
		}
		rep.Rows = append(rep.Rows, timing(size, t, 1))
	}
	return rep, drain(ep, base)
}

// drain lets the second of an unreliable pair answer late messages until the first has stopped
// sending.
func drain(ep Endpoint, base uint64) error {
	if ep.Size() != 2 {
		return nil
	}
	_, err := exchange(ep, 1-ep.Rank(), ep.Rank() == 0, make([]byte, 64), 1, base)
	return err
}

func timing(size int, seconds []float64, share float64) []float64 {
	s := stat.Summarize(seconds)
	bw := 0.0
	if s.Median > 0 {
		bw = share * float64(size) / s.Median / 1e6
	}
	return []float64{float64(size), s.Median * 1e6, s.Min * 1e6, s.Max * 1e6, s.CI * 1e6, bw}
}

// oneToN has rank 0 send a message to each other process; all answer with a short one.
func oneToN() Pattern {
	return fan("one_to_n", "rank 0 sends to all others, which answer shortly",
		func(b, ack []byte) (out, back []byte) { return b, ack })
}

// nToOne has rank 0 ask all others, which send to it at the same time.
func nToOne() Pattern {
	return fan("n_to_one", "all others send to rank 0 at once when it asks",
		func(b, ack []byte) (out, back []byte) { return ack, b })
}

// fan has rank 0 send to all others, which then send back; which decides the directions of a
// message and a short one.
func fan(name, about string, which func(b, ack []byte) (out, back []byte)) Pattern {
	round := func(ep Endpoint, b, ack []byte) error {
		out, back := which(b, ack)
		if ep.Rank() > 0 {
			if err := ep.Recv(0, out); err != nil {
				return err
			}
			return ep.Send(0, back)
		}
		for r := 1; r < ep.Size(); r++ {
			if err := ep.Send(r, out); err != nil {
				return err
			}
		}
		for r := 1; r < ep.Size(); r++ {
			if err := ep.Recv(r, back); err != nil {
				return err
			}
		}
		return nil
	}
	return Pattern{Name: name, About: about, Needs: Reliable,
		Run: func(ep Endpoint, o Options, clock Clock) (*Report, error) {
			rep := &Report{Columns: []string{"size (B)", "median (us)", "min", "max", "ci95",
				"bandwidth at rank 0 (MB/s)"}}
			ack := make([]byte, 1)
			for _, size := range o.Sizes {
				b := make([]byte, size)
				var t []float64
				for i := range o.Reps + 1 {
					at := clock.Now()
					if err := round(ep, b, ack); err != nil {
						return nil, err
					}
					if i > 0 {
						t = append(t, clock.Since(at))
					}
				}
				rep.Rows = append(rep.Rows, timing(size, t, float64(ep.Size()-1)))
			}
			return rep, nil
		}}
}

// pingPing has pairs (rank i and i + half) send to each other at the same time.
func pingPing() Pattern {
	return Pattern{Name: "ping_ping", About: "both sides of each pair send at once", Needs: Reliable | Nonblocking,
		Run: runPingPing}
}

func runPingPing(ep Endpoint, o Options, clock Clock) (*Report, error) {
	rep := &Report{Columns: []string{"size (B)", "median (us)", "min", "max", "ci95", "both directions (MB/s)"}}
	peer := (ep.Rank() + ep.Size()/2) % ep.Size()
	if ep.Size()%2 != 0 {
		return nil, errors.New("netgauge: ping_ping needs an even number of processes")
	}
	for _, size := range o.Sizes {
		out, in := make([]byte, size), make([]byte, size)
		var t []float64
		for i := range o.Reps + 1 {
			if err := meet(ep); err != nil {
				return nil, err
			}
			at := clock.Now()
			r, err := ep.(Starter).Irecv(peer, in)
			if err != nil {
				return nil, err
			}
			s, err := ep.(Starter).Isend(peer, out)
			if err != nil {
				return nil, err
			}
			if err := first(s.Wait(), r.Wait()); err != nil {
				return nil, err
			}
			if i > 0 {
				t = append(t, clock.Since(at))
			}
		}
		rep.Rows = append(rep.Rows, timing(size, t, 2))
	}
	return rep, nil
}

// overlap measures how much of a transfer from rank 0 to rank 1 hides behind computation at rank 0
// that takes as long.
func overlap() Pattern {
	return Pattern{Name: "overlap", About: "share of a send that hides behind computation",
		Needs: Reliable | Nonblocking, Run: runOverlap}
}

func runOverlap(ep Endpoint, o Options, clock Clock) (*Report, error) {
	rep := &Report{Columns: []string{"size (B)", "transfer alone (us)", "with computation (us)", "overlap (%)"}}
	ack := make([]byte, 1)
	for _, size := range o.Sizes {
		b := make([]byte, size)
		var alone, together []float64
		for i := range 2 * (o.Reps + 1) {
			switch ep.Rank() {
			case 0:
				at := clock.Now()
				s, err := ep.(Starter).Isend(1, b)
				if err != nil {
					return nil, err
				}
				compute := 0.0
				if i%2 == 1 {
					compute = stat.Median(alone)
					for c := clock.Now(); clock.Since(c) < compute; {
					}
				}
				if err := first(s.Wait(), ep.Recv(1, ack)); err != nil {
					return nil, err
				}
				if t := clock.Since(at); i%2 == 0 {
					alone = append(alone, t)
				} else {
					together = append(together, t-compute)
				}
			case 1:
				if err := first(ep.Recv(0, b), ep.Send(0, ack)); err != nil {
					return nil, err
				}
			}
		}
		if ep.Rank() == 0 {
			a, w := stat.Median(alone), stat.Median(together)
			share := 0.0
			if a > 0 {
				share = 100 * min(1, max(0, 1-w/a))
			}
			rep.Rows = append(rep.Rows, []float64{float64(size), a * 1e6, (w + a) * 1e6, share})
		}
	}
	return rep, nil
}

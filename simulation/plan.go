// Package simulation runs whole jobs in one process and in virtual time: the product's engines and
// forwarders, over the threads, clock and network of package kernel. Everything follows from a
// seed: the ranks, the network, the program and the faults. The package does no I/O.
//
// The steps of a run: plan.go draws a Plan from a seed. job.go builds its forwarders and ranks
// (rank.go) with package process. The program of a rank (work.go) knows each correct result.
// fault.go injects faults at the planned times. job.go checks invariants. fewest.go reduces a
// failing plan.
package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/simulation/kernel"
)

// Plan describes one run before it starts.
type Plan struct {
	Seed  uint64 // seed of all random decisions of the run
	Net   string // kind of network: star, rails, row or wan
	Sizes []int  // number of ranks of each cluster, by index of the cluster
	// Zippers with their ports on networks; nil if every forwarder joins all clusters.
	Zippers  []jobenv.Zipper
	Networks []string    // names of networks without ranks
	Rows     int         // number of forwarders between the same clusters, side by side
	Direct   bool        // some pairs of ranks have a direct link
	Checked  bool        // frames between ranks have checksums
	Path     kernel.Path // properties of all connections, such as rate, delay and buffer
	Small    bool        // small windows and limits in the engines
	Rounds   int         // number of rounds of communication in the program of each rank
	Faults   []Fault     // planned faults; nil if there are none
	Early    bool        // faults happen while ranks join, so joining may fail
	// Late says that faults begin when all ranks have joined and the first one has finished its
	// program.
	Late   bool
	Trunk  int  // connections for large frames between two forwarders; 0 for the forwarders' default
	OnLoss bool // the job goes on when a cluster is lost
	Alone  bool // in such a job, ranks neither send messages nor revoke communicators
	Naps   bool // ranks take each nap separately, in place of one long sleep
	// Ways says that the kernels of forwarders' hosts forward connections between ranks. A pair of
	// ranks asks for one after frames that weigh WaysAfter bytes, and then not for the time
	// WaysPause.
	Ways      bool
	WaysAfter int
	WaysPause time.Duration
}

// cluster returns the name of the cluster with index i: a letter, from "a".
func cluster(i int) string { return string(rune('a' + i)) }

// Draw returns the plan of seed. Equal seeds give equal plans.
func Draw(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 0x91a7))
	p := Plan{Seed: seed, Rounds: 1 + r.IntN(4), Small: r.IntN(2) == 0, Checked: r.IntN(3) == 0, Rows: 1}
	for range 2 + r.IntN(2)*r.IntN(3) {
		p.Sizes = append(p.Sizes, 1+r.IntN(1+r.IntN(4)))
	}
	p.Path = kernel.Path{Rate: []int64{0, 1e9, 125e6, 5e6}[r.IntN(4)],
		Delay:  time.Duration(r.IntN(200)) * time.Microsecond,
		Jitter: time.Duration(r.IntN(100)) * time.Microsecond, Buffer: []int{4 << 10, 64 << 10, 1 << 20}[r.IntN(3)],
		Pieces: r.IntN(2) == 0}
	if r.IntN(8) == 0 {
		p.Path.Delay = time.Duration(r.IntN(40)) * time.Millisecond
	}
	p.drawNet(r)
	p.Direct = p.Zippers == nil && r.IntN(3) == 0
	p.drawFaults(r)
	late := rand.New(rand.NewPCG(seed, 0x1a7e))
	p.Late = len(p.Faults) > 0 && !p.Early && late.IntN(4) == 0
	if trunks := rand.New(rand.NewPCG(seed, 0x7c)); p.Zippers != nil && trunks.IntN(3) == 0 {
		p.Trunk = 1 + trunks.IntN(3)
	}
	p.Naps = rand.New(rand.NewPCG(seed, 0x4a95)).IntN(16) == 0
	p.drawWays()
	return p
}

// DrawLosses returns the plan of seed for a job that goes on when a cluster is lost. Equal seeds
// give equal plans.
func DrawLosses(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 0x1055))
	p := Plan{Seed: seed, OnLoss: true, Rounds: 2 + r.IntN(12), Small: r.IntN(2) == 0, Checked: r.IntN(3) == 0, Rows: 1}
	for range 2 + r.IntN(4) {
		p.Sizes = append(p.Sizes, 1+r.IntN(1+r.IntN(3)))
	}
	p.Path = kernel.Path{Rate: []int64{0, 1e9, 125e6}[r.IntN(3)],
		Delay:  time.Duration(r.IntN(1<<(10+r.IntN(16)))) * time.Nanosecond,
		Jitter: time.Duration(r.IntN(100)) * time.Microsecond, Buffer: []int{4 << 10, 64 << 10, 1 << 20}[r.IntN(3)],
		Pieces: r.IntN(2) == 0}
	p.drawNet(r)
	p.Direct = p.Zippers == nil && r.IntN(4) == 0
	for range r.IntN(min(3, len(p.Sizes))) {
		f := Fault{At: time.Duration(r.IntN(1 << (10 + r.IntN(18)))), Who: r.IntN(1 << 16), Kind: Lose,
			For: time.Duration(r.IntN(1 << (10 + r.IntN(14))))}
		if r.IntN(3) == 0 {
			f.Kind = Kill
		}
		if r.IntN(2) == 0 { // in the middle of an agreement
			f.From, f.At = 1+r.IntN(3*p.size()), time.Duration(r.IntN(1<<(10+r.IntN(14))))
		}
		p.Faults = append(p.Faults, f)
	}
	for range r.IntN(1 + r.IntN(4)) {
		p.Faults = append(p.Faults, Fault{At: time.Duration(r.IntN(1 << (10 + r.IntN(18)))), Who: r.IntN(1 << 16),
			Kind: []Kind{Cut, Stall, Pause}[r.IntN(3)], For: time.Duration(r.IntN(1 << (10 + r.IntN(18))))})
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	p.Late = len(p.Faults) > 0 && r.IntN(6) == 0
	p.Alone = r.IntN(4) == 0
	if len(p.Faults) > 0 && r.IntN(4) == 0 {
		f := Fault{At: time.Duration(r.IntN(1 << (10 + r.IntN(24)))), Who: r.IntN(1 << 16), Kind: Restart,
			For: time.Duration(r.IntN(1 << (10 + r.IntN(20))))}
		if r.IntN(4) > 0 {
			f.From = 1 + r.IntN(4*p.size())
		}
		p.Faults = append(p.Faults, f)
	}
	if r.IntN(8) == 0 {
		p.Faults = append(p.Faults, Fault{At: time.Duration(r.IntN(1 << (10 + r.IntN(18)))), Who: r.IntN(1 << 16),
			Kind: Freeze, For: 14*time.Second + time.Duration(r.IntN(1<<(10+r.IntN(24))))})
	}
	p.drawWays()
	return p
}

// drawWays decides whether pairs of ranks of plan p get direct links on demand, as half of the
// plans without hops have, and adds faults of the kernels that forward them.
func (p *Plan) drawWays() {
	r := rand.New(rand.NewPCG(p.Seed, 0x3a75))
	if p.Ways = p.Zippers == nil && r.IntN(2) == 0; !p.Ways {
		return
	}
	p.WaysAfter, p.WaysPause = r.IntN(100_000), time.Duration(1+r.IntN(1<<(20+r.IntN(8))))
	if r.IntN(2) == 0 {
		return
	}
	for range 1 + r.IntN(3) {
		p.Faults = append(p.Faults, Fault{At: time.Duration(r.IntN(1 << (16 + r.IntN(14)))), Who: r.IntN(1 << 16),
			Kind: []Kind{Flush, Drop}[r.IntN(2)], For: time.Duration(r.IntN(1 << (10 + r.IntN(20))))})
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
}

// drawNet sets the forwarders between the clusters of plan p with random numbers from r.
func (p *Plan) drawNet(r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		p.Net = "star"
	case 1:
		p.Net, p.Rows = "rails", 2+r.IntN(2)
	case 2:
		p.Net, p.Rows = "row", 1+r.IntN(2)*r.IntN(2)
		for k := range p.Rows {
			for i := 1; i < len(p.Sizes); i++ {
				z := fmt.Sprintf("z%d-%d", k, i-1)
				p.Zippers = append(p.Zippers,
					jobenv.Zipper{Ports: []jobenv.Port{{Network: cluster(i - 1), Address: z},
						{Network: cluster(i), Address: z}}})
			}
		}
	case 3:
		p.Net, p.Rows, p.Networks = "wan", 1+r.IntN(2)*r.IntN(2), []string{"wan"}
		for k := range p.Rows {
			for i := range p.Sizes {
				z := fmt.Sprintf("z%d-%d", k, i)
				p.Zippers = append(p.Zippers,
					jobenv.Zipper{Ports: []jobenv.Port{{Network: cluster(i), Address: z},
						{Network: "wan", Address: z}}})
			}
		}
	}
}

// size returns the number of ranks of the job, over all clusters.
func (p *Plan) size() (n int) {
	for _, s := range p.Sizes {
		n += s
	}
	return n
}

// forwarders returns the first address of each forwarder of the plan.
func (p *Plan) forwarders() (list []string) {
	for _, z := range p.Zippers {
		list = append(list, z.Ports[0].Address)
	}
	for k := range p.Rows {
		if p.Zippers == nil {
			list = append(list, fmt.Sprintf("z%d", k))
		}
	}
	return list
}

// String returns the plan, with its faults, as text for people.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: on loss %v, clusters of %v, %s, %d rows, trunk %d, direct %v, ways %v after %d B, checked %v, small %v, naps %v, %d rounds; %+v\n",
		p.Seed, p.OnLoss, p.Sizes, p.Net, p.Rows, p.Trunk, p.Direct, p.Ways, p.WaysAfter, p.Checked, p.Small, p.Naps, p.Rounds, p.Path)
	if p.Late {
		b.WriteString("> when the first rank ends:\n")
	}
	for _, f := range p.Faults {
		fmt.Fprintf(&b, "> %v\n", f)
	}
	return b.String()
}

package plan

import (
	"math"

	"github.com/leidenzipper/zipper/contention/pqueue"
)

// move is a candidate in a queue of moves of vertices from one site to another. It is stale if the
// vertex has got another version since.
type move struct {
	vertex int // index of the vertex
	// gain is the number of seconds by which the move lowers the cost; negative if it raises the
	// cost.
	gain    float64
	version int // value of pass.version of the vertex when the move was queued
}

// Before reports whether move m has the larger gain than other.
func (m move) Before(other move) bool {
	if m.gain != other.gain {
		return m.gain > other.gain
	}
	return m.vertex < other.vertex
}

type moves = pqueue.Queue[move]

// refine improves a placement by passes of the algorithm of Fiduccia and Mattheyses until one gains
// nothing. where has the site of each vertex.
func (g *graph) refine(where []int) {
	for range refinePasses {
		if !newPass(g, where).run() {
			return
		}
	}
}

// pass moves each vertex once, the best move first even if it costs, and keeps the best prefix. A
// site may overflow by one vertex in between. Then only moves out of it are allowed, so that two
// moves make a swap.
type pass struct {
	g     *graph // graph whose vertices are moved
	sites int    // number of sites
	where []int  // site of each vertex in the current placement
	used  []int  // number of ranks on each site
	// cost has the cost in seconds of each vertex on each site in the current placement, as
	// [vertex*sites+site].
	cost    []float64
	queues  []moves // candidate moves from one site to another, as [from*sites+to]
	version []int   // number of times that each vertex was offered, by vertex
	locked  []bool  // whether each vertex has been moved in this pass, by vertex
}

func newPass(g *graph, where []int) *pass {
	n, k := len(g.vertices), len(g.p.Sites)
	p := &pass{g: g, sites: k, where: where, used: make([]int, k), cost: make([]float64, n*k),
		queues:  make([]moves, k*k),
		version: make([]int, n), locked: make([]bool, n)}
	for v, s := range where {
		p.used[s] += g.vertices[v].size
		for t := range k {
			p.cost[v*k+t] = g.at(v, t, where)
		}
	}
	for v := range where {
		p.offer(v)
	}
	return p
}

// offer puts the moves of vertex v to each other allowed site into the queues. Older ones become
// stale.
func (p *pass) offer(v int) {
	p.version[v]++
	costs := p.cost[v*p.sites : (v+1)*p.sites]
	here := costs[p.where[v]]
	for t, c := range costs {
		if t == p.where[v] || math.IsInf(c, 1) || p.g.vertices[v].size > p.g.p.Sites[t].Room {
			continue
		}
		gain := math.MaxFloat64 / 1e6 // off a site that is not allowed, at any cost
		if !math.IsInf(here, 1) {
			gain = here - c
		}
		p.queues[p.where[v]*p.sites+t].Add(move{v, gain, p.version[v]})
	}
}

// overflow returns the total number of ranks beyond the room of sites, and the index of the site
// with the most of them (-1 if there are none).
func (p *pass) overflow() (total, worst int) {
	most := 0
	worst = -1
	for s, site := range p.g.p.Sites {
		over := p.used[s] - site.Room
		total += max(0, over)
		if over > most {
			most, worst = over, s
		}
	}
	return total, worst
}

// best returns the allowed move with the largest gain, and the site to which it goes. ok is false
// if there is none.
func (p *pass) best() (m move, to int, ok bool) {
	over, full := p.overflow()
	for q := range p.queues {
		from, t := q/p.sites, q%p.sites
		if over > 0 && from != full {
			continue
		}
		queue := &p.queues[q]
		for len(*queue) > 0 && (p.locked[(*queue)[0].vertex] || (*queue)[0].version != p.version[(*queue)[0].vertex]) {
			queue.Take()
		}
		if len(*queue) == 0 {
			continue
		}
		top := (*queue)[0]
		free := p.g.p.Sites[t].Room - p.used[t]
		if free < p.g.vertices[top.vertex].size && over > 0 {
			continue // only one site may overflow at a time
		}
		if !ok || top.gain > m.gain {
			m, to, ok = top, t, true
		}
	}
	return m, to, ok
}

func (p *pass) move(v, to int) {
	from := p.where[v]
	p.locked[v] = true
	p.used[from] -= p.g.vertices[v].size
	p.used[to] += p.g.vertices[v].size
	p.where[v] = to
	for _, e := range p.g.vertices[v].edges {
		if p.locked[e.to] {
			continue
		}
		costs := p.cost[e.to*p.sites : (e.to+1)*p.sites]
		for t := range costs {
			costs[t] += e.bytes * (p.g.p.Crossings[t][to] - p.g.p.Crossings[t][from]) / p.g.p.Rate
		}
		p.offer(e.to)
	}
}

// run carries out the pass, and reports whether the placement became better.
func (p *pass) run() bool {
	type done struct{ vertex, from int }
	var log []done
	kept, keptGain := 0, 0.0
	keptOver, _ := p.overflow()
	gain, scale := 0.0, 0.0
	for idle := 0; idle < 200+len(p.where)/20; idle++ {
		m, to, ok := p.best()
		if !ok {
			break
		}
		log = append(log, done{m.vertex, p.where[m.vertex]})
		p.move(m.vertex, to)
		gain += m.gain
		scale += math.Abs(m.gain)
		// A gain below rounding does not count, so that passes come to an end.
		if over, _ := p.overflow(); over < keptOver || over == keptOver && gain > keptGain+1e-12*scale {
			kept, keptGain, keptOver, idle = len(log), gain, over, 0
		}
	}
	for k := len(log) - 1; k >= kept; k-- {
		p.where[log[k].vertex] = log[k].from
	}
	return kept > 0
}

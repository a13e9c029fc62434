package job

import (
	"fmt"
	"strings"

	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Links that a job of several hops lacks while it gathers. The forwarder that knows of one, and
// why, need not be the one whose ranks are first at the end of their patience, and may have no
// ranks. So each tells its neighbours which links it lacks, and what it has heard from those on its
// other networks (Notice): when a link to them is there, and when that changes. Each forwarder that
// gives the job up, at whatever moment, can say what is wrong and what to do.

// Unreachable says what to do when a forwarder cannot be dialled.
const Unreachable = "is that its address there, does it run, does its site's firewall let that port in? " +
	"if that must not be, the other side has to dial (dial: in the job file)"

// gaps are the links that the job lacks, as far as this forwarder knows.
type gaps struct {
	*links
	dialled  bool               // dialled: a rank has joined here, and this forwarder has dialled its neighbours.
	failures map[int]string     // failures are those of the last attempts to reach neighbours.
	said     map[int]*exchanged // said is what was exchanged with each neighbour.
}

// exchanged is what a forwarder and a neighbour have told each other of links that they lack.
type exchanged struct {
	lacks   string // lacks is what the other end lacks.
	told    string // told is what it was told.
	notices int    // notices counts those that came of it.
}

// text says which neighbours have no link, and what those that have one lack. to, if not nil, is
// the end that is told: what others on that network lack it hears from them.
func (g *gaps) text(to *bridge.Bridge) string {
	var list []string
	network := -1
	if to != nil {
		n, _ := g.neighbour(to.Zipper)
		network = n.network
	}
	for k := range g.zippers {
		n, ok := g.neighbour(k)
		switch {
		case !ok || g.linked(k):
		case n.dials && !g.dialled:
			list = append(list, fmt.Sprintf("no link to the forwarder %s, which this one dials once a rank has joined it",
				g.name(k)))
		case n.dials:
			why := ""
			if s := g.failures[k]; s != "" {
				why = " (" + s + ")"
			}
			list = append(list, fmt.Sprintf("no link to the forwarder %s%s: %s", g.name(k), why, Unreachable))
		default:
			list = append(list, fmt.Sprintf("no link from the forwarder %s, which dials this one at %s once a rank "+
				"has joined it: its log says why; is that this one's address there, does the firewall here let that port in?",
				g.name(k), n.mine))
		}
	}
	for _, k := range sorted(g.said) {
		if n, _ := g.neighbour(k); g.linked(k) && g.said[k].lacks != "" && n.network != network {
			list = append(list, fmt.Sprintf("the forwarder %s says: %s", g.bridges[k].Address, g.said[k].lacks))
		}
	}
	if n := len(list) - maxGaps; n > 0 {
		list = append(list[:maxGaps], fmt.Sprintf("and %d more such links", n))
	}
	return strings.Join(list, "; ")
}

// with returns what was exchanged with a neighbour.
func (g *gaps) with(zipper int) *exchanged {
	x := g.said[zipper]
	if x == nil {
		x = &exchanged{}
		g.said[zipper] = x
	}
	return x
}

// tell tells the neighbours what has changed.
func (g *gaps) tell() {
	if g.state != Gathering {
		return
	}
	for _, br := range g.list() {
		x := g.with(br.Zipper)
		if s := gapText(g.text(br)); s != x.told {
			x.told = s
			g.send(br, wire.TypeNotice, &wire.Notice{Text: s})
		}
	}
}

// hear takes a neighbour's word for what it lacks.
func (g *gaps) hear(zipper int, n *wire.Notice) {
	x := g.with(zipper)
	if x.notices++; x.notices <= maxGapNotices {
		x.lacks = gapText(wire.Printable(n.Text))
		g.tell()
	}
}

// fails notes why a neighbour is not reached so far. A stranger's job learns nothing of what is
// there.
func (g *gaps) fails(zipper int, why string) {
	if !g.cfg.Stranger {
		g.failures[zipper] = why
		g.tell()
	}
}

// gapText bounds what is told of gaps.
func gapText(s string) string {
	if len(s) <= maxGapText {
		return s
	}
	return strings.ToValidUTF8(s[:maxGapText], "") + "…"
}

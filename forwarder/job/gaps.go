package job

import (
	"fmt"
	"strings"

	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/internal/wire"
)

// This file collects the links that a job of several hops is missing while it gathers. The
// forwarder that knows of such a link, and of its reason, may have no ranks, or ranks that are not
// the first to time out. So each forwarder tells its neighbours its own missing links, and those
// reported on its other networks (Notice), once a link to the neighbour is open and after each
// change. Each forwarder that gives up the job can then say at any time what is wrong and what to
// do.

// Unreachable is the advice to users when a forwarder cannot be dialled.
const Unreachable = "is that its address there, is it running, does its site's firewall admit that port? " +
	"if it must not, configure the other side to dial (dial: in the job file)"

// gaps records which links between forwarders, anywhere in the job, are missing while it gathers.
type gaps struct {
	*links
	// dialled says that a rank has joined here, and this forwarder has dialled its neighbours.
	dialled bool
	// failures has the error of the last attempt to reach each neighbour.
	failures map[int]string
	// exchanges has the texts that were exchanged with each neighbour.
	exchanges map[int]*exchanged
}

// exchanged has the texts about missing links that a forwarder and a neighbour have exchanged.
type exchanged struct {
	missing string // missing is the last text from the neighbour.
	sent    string // sent is the last text sent to the neighbour.
	notices int    // notices counts the texts from the neighbour.
}

// text returns a text that names the neighbours to which there is no link, followed by the texts
// from the other neighbours. to, if not nil, is the bridge to the recipient: the recipient gets the
// texts of neighbours on its own network directly, so these are left out.
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
				"has joined it: its log has the reason; is that this one's address there, does the firewall here admit that port?",
				g.name(k), n.mine))
		}
	}
	for _, k := range sorted(g.exchanges) {
		if n, _ := g.neighbour(k); g.linked(k) && g.exchanges[k].missing != "" && n.network != network {
			list = append(list, fmt.Sprintf("the forwarder %s says: %s", g.bridges[k].Address, g.exchanges[k].missing))
		}
	}
	if n := len(list) - maxGaps; n > 0 {
		list = append(list[:maxGaps], fmt.Sprintf("and %d more such links", n))
	}
	return strings.Join(list, "; ")
}

// with returns the texts that this forwarder has exchanged with the neighbour with index zipper.
func (g *gaps) with(zipper int) *exchanged {
	x := g.exchanges[zipper]
	if x == nil {
		x = &exchanged{}
		g.exchanges[zipper] = x
	}
	return x
}

// tell sends each neighbour its text about missing links if that has changed since it was last
// sent.
func (g *gaps) tell() {
	if g.state != Gathering {
		return
	}
	for _, br := range g.list() {
		x := g.with(br.Zipper)
		if s := gapText(g.text(br)); s != x.sent {
			x.sent = s
			g.send(br, wire.TypeNotice, &wire.Notice{Text: s})
		}
	}
}

// noteMissing stores a neighbour's text about its missing links.
func (g *gaps) noteMissing(zipper int, n *wire.Notice) {
	x := g.with(zipper)
	if x.notices++; x.notices <= maxGapNotices {
		x.missing = gapText(wire.Printable(n.Text))
		g.tell()
	}
}

// fails records why the neighbour with index zipper has not been reached so far. A stranger's job
// gets no such details of the network.
func (g *gaps) fails(zipper int, why string) {
	if !g.cfg.Stranger {
		g.failures[zipper] = why
		g.tell()
	}
}

// gapText returns s, a text about missing links. It cuts a longer text off after maxGapText bytes
// and adds an ellipsis.
func gapText(s string) string {
	if len(s) <= maxGapText {
		return s
	}
	return strings.ToValidUTF8(s[:maxGapText], "") + "…"
}

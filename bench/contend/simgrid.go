package contend

import (
	"bytes"
	"fmt"
	"math/big"
	"os/exec"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/contention/platform"
)

// simgridWay is how SimGrid is asked.
type simgridWay struct {
	rule string
	args []string
}

// simgridWays returns the settings of SimGrid that predictions are made with: its default; without
// the traffic of acknowledgements, which overtake data in the lab; its older model CM02; and that
// model with a forwarder written for SimGrid.
func simgridWays() []simgridWay {
	return []simgridWay{{"SimGrid", []string{"flows"}},
		{"SimGrid, no cross-traffic", []string{"flows", "--cfg=network/crosstraffic:0"}},
		{"SimGrid, CM02", []string{"flows", "--cfg=network/model:CM02", "--cfg=network/crosstraffic:0"}},
		{"SimGrid, forwarder", []string{"forwarder", "--cfg=network/model:CM02", "--cfg=network/crosstraffic:0"}}}
}

// BySimGrid has patterns predicted by the program of bench/contend/simgrid, too.
func BySimGrid(program string, p *platform.Platform, list []Outcome) error {
	for i := range list {
		o := &list[i]
		input := simgridInput(p, o)
		for _, w := range simgridWays() {
			args := append(append([]string{}, w.args...), "--log=root.threshold:error")
			cmd := exec.Command(program, args...)
			cmd.Stdin = strings.NewReader(input)
			var says bytes.Buffer
			cmd.Stderr = &says
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s, %s: %w: %s", w.rule, o.Pattern, err, strings.TrimSpace(says.String()))
			}
			lines := strings.Fields(string(out))
			if len(lines) != len(o.Transfers) {
				return fmt.Errorf("%s, %s: %d times for %d messages", w.rule, o.Pattern, len(lines), len(o.Transfers))
			}
			for k := range lines {
				at, err := strconv.ParseFloat(lines[k], 64)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", w.rule, o.Pattern, err)
				}
				o.Transfers[k].Predicted[w.rule] = at - o.Starts[o.Transfers[k].To]
			}
		}
	}
	return nil
}

// simgridInput is a platform and a pattern's messages for it.
func simgridInput(p *platform.Platform, o *Outcome) string {
	var b strings.Builder
	value := func(r *big.Rat) float64 {
		if r == nil {
			return 0
		}
		v, _ := r.Float64()
		return v
	}
	link := func(name string, d platform.Duplex, latency float64) {
		fmt.Fprintf(&b, "link %s.out %.0f %.9f\nlink %s.in %.0f %.9f\n", name, value(d.Out.Rat), latency, name,
			value(d.In.Rat), latency)
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		for _, h := range c.Hosts.Names {
			fmt.Fprintf(&b, "host %s\n", h)
			link(h, c.NIC, value(c.Latency.Rat)/2)
		}
		for _, from := range c.Hosts.Names {
			for _, to := range c.Hosts.Names {
				if from != to {
					fmt.Fprintf(&b, "route %s %s %s.out %s.in\n", from, to, from, to)
				}
			}
		}
	}
	for i := range p.Zippers {
		z := &p.Zippers[i]
		fmt.Fprintf(&b, "zipper %s\n", z.Name)
		for k := range p.Clusters {
			c := &p.Clusters[k]
			port, ok := z.Ports[c.Name]
			if !ok {
				continue
			}
			own := z.Name + "." + c.Name
			link(own, port, 0)
			for _, h := range c.Hosts.Names {
				fmt.Fprintf(&b, "route %s %s %s.out %s.in\nroute %s %s %s.out %s.in\n", h, z.Name, h, own, z.Name, h, own, h)
			}
		}
	}
	// From cluster to cluster by the zipper that the message takes: a pair of hosts has one.
	cluster := func(host string) string { return p.Clusters[p.ClusterOf(host)].Name }
	done := map[[2]string]bool{}
	for _, t := range o.Transfers {
		pair := [2]string{t.From, t.To}
		if t.Via == "" || done[pair] {
			continue
		}
		done[pair] = true
		fmt.Fprintf(&b, "route %s %s %s.out %s.%s.in %s.%s.out %s.in\n", t.From, t.To, t.From, t.Via, cluster(t.From),
			t.Via, cluster(t.To), t.To)
	}
	for _, t := range o.Transfers {
		via := t.Via
		if via == "" {
			via = "-"
		}
		fmt.Fprintf(&b, "message %s %s %d %.6f %s\n", t.From, t.To, o.Bytes, o.Starts[t.From], via)
	}
	return b.String()
}

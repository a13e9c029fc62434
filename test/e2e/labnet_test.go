package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/bench/netgauge"
)

// TestLabNet checks that every module of zipper bench net that needs a network works between two
// nodes of the lab, raw Ethernet included.
func TestLabNet(t *testing.T) {
	l := newLab(t)
	b := l.b
	mac := func(node string) string {
		return strings.TrimSpace(b.OK(b.Run(nil, l.env, "scripts/lab", "on", node, "cat",
			"/sys/class/net/eth0/address")).Stdout)
	}
	for module, nodes := range map[string]string{
		"tcp": "10.81.1.11:5711,10.81.1.12:5711",
		"udp": "10.81.1.11:5711,10.81.1.12:5711",
		"ip":  "10.81.1.11,10.81.1.12",
		"eth": "eth0/" + mac("a1") + ",eth0/" + mac("a2"),
	} {
		t.Run(module, func(t *testing.T) {
			run := func(node, rank string) *Proc {
				return b.Start(nil, l.env, "scripts/lab", "on", node, b.Zipper, "bench", "net", "--nodes", nodes,
					"--rank", rank, "--reps", "3", "--json", "one_to_one", module)
			}
			p0, p1 := run("a1", "0"), run("a2", "1")
			r := b.OK(p0.Wait())
			b.OK(p1.Wait())
			var rep netgauge.Report
			if err := json.Unmarshal([]byte(r.Stdout), &rep); err != nil || len(rep.Rows) < 3 {
				t.Fatalf("%v: %v", err, r)
			}
			for _, row := range rep.Rows {
				if row[1] <= 0 {
					t.Errorf("a one-way time of %v us: %v", row[1], row)
				}
			}
		})
	}
}

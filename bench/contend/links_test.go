package contend

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/contention/pattern"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/simulation/play"
)

// TestSimulationAndCalibrationAgreeOnASmallMessage checks that simulation and calibration assume
// the same cost of a small message, because the machine's own work would be counted twice
// otherwise.
func TestSimulationAndCalibrationAgreeOnASmallMessage(t *testing.T) {
	for costs, want := range map[string]float64{"call: 1us": smallCalls, "switch: 1us": smallWakings} {
		p, err := platform.Read(strings.NewReader(fmt.Sprintf(`
clusters:
  - {name: a, hosts: 2, nic: 1gbit, latency: 150us, processor: {%[1]s}}
  - {name: b, hosts: 2, nic: 1gbit, latency: 150us, processor: {%[1]s}}
zippers:
  - {name: z, ports: {a: 1gbit, b: 1gbit}, through: 280us, relay: segmented, processor: {%[1]s}}
`, costs)))
		if err != nil {
			t.Fatal(err)
		}
		used := func(messages int) time.Duration {
			var text strings.Builder
			for i := range messages {
				from, to, after := "a1", "b1", ""
				if i%2 == 1 {
					from, to = to, from
				}
				if i > 0 {
					after = fmt.Sprintf(" after=m%d", i-1)
				}
				fmt.Fprintf(&text, "%s %s 1 name=m%d%s\n", from, to, i, after)
			}
			list, err := pattern.Read(strings.NewReader(text.String()), p.Places())
			if err != nil {
				t.Fatal(err)
			}
			r, err := play.Run(p, list, play.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return r.Used
		}
		if got := float64(used(110)-used(10)) / 100 / 1000; got < want-0.1 || got > want+0.1 {
			t.Errorf("%s: a small message takes %.2f us, want %.2f", costs, got, want)
		}
	}
}

// TestBusyProcessorsAreCounted checks that the work of processors is counted.
func TestBusyProcessorsAreCounted(t *testing.T) {
	m := &measurer{}
	busy, times, err := m.busy(func() error {
		for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		}
		return nil
	}, 10)
	if err != nil || times != 10 || busy < 0.15 {
		t.Errorf("10 times 20 ms of computing: %.3f s in %d, %v", busy, times, err)
	}
}

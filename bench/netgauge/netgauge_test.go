package netgauge

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// places returns n processes' addresses, at a host that is this process's own: no other program
// takes a port there before its use, as programs that connect at 127.0.0.1 do.
func places(t *testing.T, module string, n int) []string {
	t.Helper()
	var addrs []string
	pid := os.Getpid()
	own := fmt.Sprintf("127.%d.%d.%d:0", 1+pid>>16&0x7f, pid>>8&0xff, pid&0xff)
	for i := range n {
		switch module {
		case "tcp":
			l, err := net.Listen("tcp", own)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close() // when all have one
			addrs = append(addrs, l.Addr().String())
		case "udp":
			c, err := net.ListenPacket("udp", own)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			addrs = append(addrs, c.LocalAddr().String())
		case "ip":
			addrs = append(addrs, fmt.Sprintf("127.0.0.%d", 2+i))
		case "shm":
			addrs = append(addrs, filepath.Join(t.TempDir(), "s"))
		}
	}
	return addrs
}

func runAll(t *testing.T, p Pattern, m Module, n int) *Report {
	t.Helper()
	addrs := places(t, m.Name, n)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	reports, errs := make([]*Report, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			o := Options{Sizes: []int{1, 64, 512, 1400}, Reps: 5, Seed: 7}
			reports[r], errs[r] = Run(ctx, p, m, Place{r, addrs}, o)
		})
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return reports[0]
}

// TestEveryFittingPairRuns runs every pattern over every module that fits, on loopback, and checks
// that the figures are plausible.
func TestEveryFittingPairRuns(t *testing.T) {
	for _, p := range Patterns() {
		for _, m := range Modules() {
			t.Run(p.Name+"/"+m.Name, func(t *testing.T) {
				if m.Name == "eth" {
					t.Skip("raw Ethernet needs two interfaces: run in the namespace lab (scripts/test does, with root)")
				}
				if strings.HasPrefix(m.Name, "verbs") {
					if p.Needs&^m.Offers != 0 {
						return
					}
					t.Skip("needs RDMA ports that reach each other: scripts/verbs-lab runs it")
				}
				if err := Fits(p, m); err != nil {
					if m.Name == "ip" && os.Geteuid() != 0 || p.Needs&^m.Offers != 0 {
						t.Skipf("does not fit: %v", err)
					}
					t.Fatal(err)
				}
				n := 2
				if m.Offers&Many != 0 && p.Name != "loggp" && p.Name != "plogp" && p.Name != "overlap" {
					n = 4
				}
				r := runAll(t, p, m, n)
				if len(r.Rows) < 3 || r.Ranks != n {
					t.Fatalf("report of %d rows: %+v", len(r.Rows), r)
				}
				for _, row := range r.Rows {
					if len(row) != len(r.Columns) || row[1] <= 0 || row[1] > 1e6 {
						t.Errorf("row %v under %v", row, r.Columns)
					}
				}
				if p.Name == "loggp" && len(r.Values) != 4 {
					t.Errorf("values %v", r.Values)
				}
			})
		}
	}
}

func TestUnfitPairsAreRefused(t *testing.T) {
	udp, tcp := udpModule(), tcpModule()
	if err := Fits(logGP(), udp); err == nil || !strings.Contains(err.Error(), "reliable delivery") {
		t.Errorf("loggp over udp: %v", err)
	}
	for _, m := range []Module{ucModule(), udModule()} {
		for _, p := range []Pattern{oneToN(), nToOne(), logGP(), pLogP()} {
			if err := Fits(p, m); err == nil || !strings.Contains(err.Error(), "reliable delivery") {
				t.Errorf("%s over %s: %v", p.Name, m.Name, err)
			}
		}
	}
	if err := Fits(pingPing(), shmModule()); err == nil || !strings.Contains(err.Error(), "nonblocking") {
		t.Errorf("ping_ping over shm: %v", err)
	}
	if _, _, err := Find("nonsense", "tcp"); err == nil || !strings.Contains(err.Error(), "one_to_one") {
		t.Errorf("unknown pattern: %v", err)
	}
	if _, _, err := Find("loggp", "gm"); err == nil || !strings.Contains(err.Error(), "tcp") {
		t.Errorf("unknown module: %v", err)
	}
	ctx := context.Background()
	for _, at := range []Place{{0, []string{"x"}}, {2, []string{"x", "y"}}, {-1, []string{"x", "y"}}} {
		if _, err := Run(ctx, oneToOne(), tcp, at, Defaults()); err == nil {
			t.Errorf("place %+v was accepted", at)
		}
	}
	if _, err := Run(ctx, oneToOne(), udp, Place{0, []string{"a", "b", "c"}}, Defaults()); err == nil {
		t.Error("three processes over udp were accepted")
	}
}

// TestImpossibleParameterHasANote checks that an impossible parameter has a note.
func TestImpossibleParameterHasANote(t *testing.T) {
	r := Report{Values: map[string]float64{"L": -8.9e-6, "o": 1e-6, "g": -4.6e-6, "G": 0}}
	r.doubt()
	if len(r.Notes) != 2 || !strings.HasPrefix(r.Notes[0], "L is negative: it cannot be measured") ||
		!strings.HasPrefix(r.Notes[1], "g is negative") {
		t.Errorf("notes %q", r.Notes)
	}
}

// TestLoneProcessGivesUp checks that a process without others does not wait for ever.
func TestLoneProcessGivesUp(t *testing.T) {
	for _, m := range []Module{tcpModule(), udpModule(), shmModule()} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		addrs := places(t, m.Name, 2)
		for r := range 2 {
			if _, err := Run(ctx, oneToOne(), m, Place{r, addrs}, Defaults()); err == nil {
				t.Errorf("%s: rank %d alone succeeded", m.Name, r)
			}
		}
		cancel()
	}
}

func TestClock(t *testing.T) {
	c := NewClock()
	if c.Overhead <= 0 || c.Overhead > 1e-4 {
		t.Errorf("reading the clock takes %v s", c.Overhead)
	}
	if d := c.Since(c.Now()); d < 0 || d > 1e-2 {
		t.Errorf("no time takes %v s", d)
	}
}

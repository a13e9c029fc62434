package measure

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/bench/lab/delayline"
)

func link(delay time.Duration) delayline.Options {
	o := delayline.Defaults()
	o.Delay = delay
	return o
}

func TestAimsDependOnTheDelay(t *testing.T) {
	at20, at50 := link(20*time.Millisecond), link(50*time.Millisecond)
	if p := Payload(at20); math.Abs(p-941.5) > 0.1 {
		t.Errorf("TCP carries %v Mbit/s", p)
	}
	for _, c := range []struct {
		row        Row
		at20, at50 float64
	}{
		{Stream1M, 894, 866}, {Stream64K, 847, 829}, {Loss01, 659, 471}, {Both, 1699, 1646}, {Small, 20.5, 50.5}, {First, 100, 220},
		{Arrives, 31.8, 64.8}, {Returns, 3, 3}, {Memory, 79, 101.5}, {Collective("bcast", "8 B"), 22, 52}, {Fairness(Pairs8), 0.9, 0.9},
	} {
		if a, b := c.row.Aim(at20), c.row.Aim(at50); math.Abs(a-c.at20) > 0.5 || math.Abs(b-c.at50) > 0.5 {
			t.Errorf("%s: %v and %v, want %v and %v", c.row.Name, a, b, c.at20, c.at50)
		}
	}
}

// TestAimsTable checks that the table shows and marks void values, computes medians without them,
// and has a reason in place of a missing value.
func TestAimsTable(t *testing.T) {
	line := link(20 * time.Millisecond)
	r := &Report{Line: &line, Rounds: 3}
	good := []delayline.Stats{{Late99: 100 * time.Microsecond}, {Late99: 200 * time.Microsecond}}
	late := []delayline.Stats{{}, {Late99: 3 * time.Millisecond}}
	add := func(row Row, target string, round int, value float64, ways []delayline.Stats) {
		r.Add(row, target, Value{Round: round, Value: value}, ways)
	}
	add(Stream1M, "zipped", 0, 500, good)
	r.Miss(Stream1M, "trunk", "refused")
	add(Small, "zipped", 0, 20.4, good)
	add(Stream1M, "zipped", 1, 10, late)
	add(Stream1M, "routed", 0, 900, good)
	add(Stream1M, "zipped", 2, 600, good)
	add(Stream64K, "zipped", 0, 12, late)
	add(Both, "zipped", 0, 1800, good)
	add(Stream64K, "routed", 0, 1800, good)
	var b strings.Builder
	if err := r.Aims(&b); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for i, want := range []string{
		"| row | target | median | lowest - highest | unit | aim | verdict | line late, us: median, p99, max |",
		"|--- |--- |--- |--- |--- |--- |--- |---|",
		"| 1 MiB stream, one pair | zipped | 550 | 500 - 600 | Mbit/s | >= 894 | missed, 1 void | 0, 3000, 0 |",
		"| 1 MiB stream, one pair | trunk | not measured [1] | | Mbit/s | >= 894 | | |",
		"| 1 MiB stream, one pair | routed | 900 | 900 - 900 | Mbit/s | >= 894 | met | 0, 200, 0 |",
		"| 8 B arrives | zipped | 20.4 | 20.4 - 20.4 | ms | <= 20.5 | met | 0, 200, 0 |",
		"| 64 KiB stream, one pair | zipped | 12 | 12 - 12 | Mbit/s | >= 847 | VOID: 1 % of the packets left 3ms late | 0, 3000, 0 |",
		"| 64 KiB stream, one pair | routed | 1800 | 1800 - 1800 | Mbit/s | >= 847 | VOID: more than the 941 Mbit/s that the line carries | 0, 200, 0 |",
		"| both directions at once | zipped | 1800 | 1800 - 1800 | Mbit/s | >= 1699 | met | 0, 200, 0 |",
		"",
		"[1] refused",
	} {
		if got := lines[i+2]; got != want {
			t.Errorf("line %d:\n%s\nwant\n%s", i, got, want)
		}
	}
	var out bytes.Buffer
	if err := r.CSV(&out); err != nil {
		t.Fatal(err)
	}
	if all, err := csv.NewReader(&out).ReadAll(); err != nil || len(all) != 1+3+1+1+1+1+2 {
		t.Errorf("%v, %d lines", err, len(all))
	}
	out.Reset()
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back.Figures) != 7 ||
		back.Figures[0].Values[1].Void == "" {
		t.Errorf("%v: %+v", err, back)
	}
}

package pattern

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

var places = []string{"a1", "a1", "a2", "b1"}

func TestRead(t *testing.T) {
	ms, err := Read(strings.NewReader(`
# warm-up
a1 b1 64KiB name=x
0 3 1MB start=1.5ms after=x,y   # ranks
b1 a2 5 name=y
0 1 7
`), places)
	if err != nil {
		t.Fatal(err)
	}
	if len(ms) != 4 || ms[1].From != "a1" || ms[1].To != "b1" || !slices.Equal(ms[1].After, []int{0, 2}) ||
		ms[1].Start.RatString() != "3/2000" || ms[0].Bytes.RatString() != "65536" || ms[1].Line != 4 ||
		ms[3].From != ms[3].To {
		t.Errorf("%+v", ms)
	}
	if ms, err := Read(strings.NewReader("10.1.0.1 0 5\n"), places); err != nil || ms[0].From != "10.1.0.1" ||
		ms[0].To != places[0] {
		t.Errorf("an address: %+v, %v", ms, err)
	}
	for in, want := range map[string]string{
		"":                       "no messages",
		"a1 b1":                  "line 1: want FROM TO SIZE",
		"\na1 a1 5":              "line 2: message from a1 to itself",
		"2 2 5":                  "line 1: message from 2 to itself",
		"0 9 5":                  "line 1: rank 9: the platform has room for 4",
		"a1 b1 x":                "line 1: \"x\" is no size",
		"a1 b1 -5":               "line 1",
		"a1 b1 5 when=now":       "line 1: unknown option \"when\"",
		"a1 b1 5 start":          "line 1: option \"start\"",
		"a1 b1 5 start=soon":     "line 1: \"soon\" is no time",
		"a1 b1 5 after=z":        "line 1: after: no message is named \"z\"",
		"a1 b1 5 name=z after=z": "line 1: the message waits for itself",
		"a1 b1 5\na1 b1 5 name=x after=y\na1 b1 5 name=y after=x": "line 2: message x can never start",
		"a1 b1 5 name=z\na1 b1 5 name=z":                          "line 2: two messages are named z",
	} {
		if _, err := Read(strings.NewReader(in), places); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", in, err, want)
		}
	}
}

func names(ms []platform.Message) string {
	var s []string
	for _, m := range ms {
		s = append(s, m.Name)
	}
	return strings.Join(s, " ")
}

func TestGenerate(t *testing.T) {
	for spec, want := range map[string]string{
		"ring":                    "0>1 1>2 2>3 3>0",
		"chain:ranks=3":           "0>1 1>2",
		"alltoall:ranks=3,size=5": "0>1 0>2 1>2 1>0 2>0 2>1",
		"gather:root=1":           "0>1 2>1 3>1",
		"scatter":                 "0>1 0>2 0>3",
	} {
		ms, err := Generate(spec, places)
		if err != nil || names(ms) != want {
			t.Errorf("%s: %s, %v; want %s", spec, names(ms), err, want)
		}
	}
	ms, _ := Generate("chain:size=5", places)
	if ms[0].After != nil || !slices.Equal(ms[2].After, []int{1}) || ms[2].Bytes.Cmp(big.NewRat(5, 1)) != 0 {
		t.Errorf("chain %+v", ms)
	}
	one, err := Generate("random:d=2,seed=3", places)
	if err != nil {
		t.Fatal(err)
	}
	same, _ := Generate("random:d=2,seed=3", places)
	other, _ := Generate("random:d=2,seed=4", places)
	if len(one) != 8 || names(one) != names(same) || names(one) == names(other) {
		t.Errorf("random: %s | %s | %s", names(one), names(same), names(other))
	}
	sent := map[string]bool{}
	for _, m := range one {
		if sent[m.Name] {
			t.Errorf("random: %s twice", m.Name)
		}
		sent[m.Name] = true
	}
	for _, bad := range []string{"circle", "ring:ranks=1", "ring:ranks=5", "ring:x=1", "gather:root=4", "random:d=4",
		"random:d=0", "ring:size=x", "ring:ranks=-1"} {
		if _, err := Generate(bad, places); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestReplay(t *testing.T) {
	tr := &trace.Trace{Clusters: []trace.Cluster{{Name: "a", Ranks: 4}}, Messages: []trace.Message{
		{Start: 300, End: 400, Src: 1, Dst: 2, Bytes: 7},        // answer to the first
		{Start: 0, End: 100, Src: 0, Dst: 1, Bytes: 5 + Eager},  // first
		{Start: 50, End: 200, Src: 0, Dst: 2, Bytes: 6 + Eager}, // beside it
		{Start: 250, End: 300, Src: 0, Dst: 3, Bytes: 8},        // after both
	}}
	ms, err := Replay(tr, places, big.NewRat(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	if names(ms) != "0>1 0>2 0>3 1>2" {
		t.Fatal(names(ms))
	}
	if ms[0].After != nil || ms[1].After != nil || fmt.Sprint(ms[2].After, ms[2].Sent, ms[3].After,
		ms[3].Sent) != "[] [1] [0] []" {
		t.Errorf("after: %v %v %v %v; sent: %v %v", ms[0].After, ms[1].After, ms[2].After, ms[3].After, ms[2].Sent,
			ms[3].Sent)
	}
	if ms[2].Delay.Cmp(big.NewRat(50, 1e9)) != 0 || ms[3].Delay.Cmp(big.NewRat(200, 1e9)) != 0 {
		t.Errorf("delays %v %v", ms[2].Delay, ms[3].Delay)
	}
	if quiet, _ := Replay(tr, places, nil); quiet[2].Delay != nil {
		t.Error("communication-only replay kept a gap")
	}
	if _, err := Replay(tr, places[:3], nil); err == nil {
		t.Error("too many ranks were accepted")
	}
	tr.Messages[2].Bytes = Eager // too short to be waited for
	if ms, err = Replay(tr, places, nil); err != nil || fmt.Sprint(ms[2].Sent) != "[0]" {
		t.Errorf("after an eager message: %v, %v", ms[2].Sent, err)
	}
	matrix := &trace.Trace{Clusters: tr.Clusters, Totals: []trace.Total{{Src: 1, Dst: 0, Bytes: 4},
		{Src: 0, Dst: 1, Bytes: 3}, {Src: 1, Dst: 0, Bytes: 4}}}
	if ms, err := Replay(matrix, places, nil); err != nil || names(ms) != "0>1 1>0" || ms[1].Bytes.RatString() != "8" {
		t.Errorf("matrix: %s %v", names(ms), err)
	}
}

// TestReplayWork checks the processor times between messages.
func TestReplayWork(t *testing.T) {
	tr := &trace.Trace{Clusters: []trace.Cluster{{Name: "a", Ranks: 2}}, Messages: []trace.Message{
		{Start: 100, End: 200, Src: 0, Dst: 1, Bytes: 7, SrcUsed: 40, DstUsed: 90}, // 60 of 100 were spent waiting
		{Start: 150, End: 260, Src: 0, Dst: 1, Bytes: 7, SrcUsed: 50, DstUsed: 95}, // 10 after the first
		{Start: 300, End: 400, Src: 1, Dst: 0, Bytes: 7, SrcUsed: 120, DstUsed: 70},
	}}
	ms, err := Replay(tr, places, big.NewRat(2, 1))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][2]int64{{80, 180}, {20, 10}, {50, 40}} {
		for end, got := range []*big.Rat{ms[i].Work, ms[i].Taken} {
			if got.Cmp(big.NewRat(want[end], 1e9)) != 0 {
				t.Errorf("message %d, end %d: %v ns", i, end, new(big.Rat).Mul(got, big.NewRat(1e9, 1)).RatString())
			}
		}
	}
	if got := fmt.Sprint(ms[0].Turn, ms[1].Turn, ms[2].Turn); got != "[0 0] [1 1] [2 2]" {
		t.Errorf("turns %v", got)
	}
	if ms, err = Replay(tr, places, nil); err != nil || ms[1].Work != nil {
		t.Errorf("communication-only replay kept work: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a1 b1 64KiB name=x\n0 3 1MB start=1ms after=x # c")
	f.Fuzz(func(t *testing.T, s string) {
		ms, err := Read(strings.NewReader(s), places)
		if err != nil {
			return
		}
		for _, m := range ms {
			if m.Bytes.Sign() < 0 || m.Line < 1 || m.From == "" || m.To == "" {
				t.Fatalf("%+v", m)
			}
			for _, a := range m.After {
				if a < 0 || a >= len(ms) {
					t.Fatalf("%+v", m)
				}
			}
		}
	})
}

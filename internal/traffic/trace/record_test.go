package trace

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestRecordAndMerge(t *testing.T) {
	a, b := NewRecorder(0, 3), NewRecorder(1, 3)
	a.Sent(10, 3, 1, 100)
	b.Received(15, 4, 0)
	a.Sent(20, 5, 1, 200)
	b.Received(19, 6, 0) // a clock that is behind
	b.Sent(30, 7, 0, 5)
	a.Received(40, 8, 1)
	a.Sent(50, 9, 1, 1) // never received
	a.Sent(60, 9, 1, 2) // beyond the limit
	var parts [2]bytes.Buffer
	if err := a.Write(&parts[0], "h1"); err != nil {
		t.Fatal(err)
	}
	if err := b.Write(&parts[1], "h2"); err != nil {
		t.Fatal(err)
	}
	first := parts[0].String()
	x, unmatched, err := Merge("job", []Cluster{{"c", 1}, {"d", 1}}, []io.Reader{&parts[0], &parts[1]})
	if err != nil {
		t.Fatal(err)
	}
	// The fastest messages took -1 and 10: 1 is behind by 5.
	want := []Message{{Start: 10, End: 20, Src: 0, Dst: 1, Bytes: 100, SrcUsed: 3, DstUsed: 4},
		{Start: 20, End: 24, Src: 0, Dst: 1, Bytes: 200, SrcUsed: 5, DstUsed: 6},
		{Start: 35, End: 40, Src: 1, Dst: 0, Bytes: 5, SrcUsed: 7, DstUsed: 8}}
	if !reflect.DeepEqual(x.Messages, want) || unmatched != 1 || x.Hosts[1] != "h2" || x.Matrix()[[2]int{0, 1}] != 303 {
		t.Errorf("%+v, %d unmatched", x, unmatched)
	}
	var file bytes.Buffer
	if err := x.Write(&file); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(&file); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct{ old, new, want string }{
		{"zipper-trace-part", "zipper-trace", "line 1: not a part"},
		{"rank 0 h1", "rank 7 h1", "line 2: rank 7"},
		{"rank 0 h1\n", "", "line 2: want one rank record first"},
		{"sent 10 1 100 3", "sent 10 0 100 3", "rank 0 sends to itself"},
		{"sent 10 1 100 3", "sent x 1 100 3", "is not a number"},
		{"sent 10 1 100 3", "sent 99999999999999999 1 100 3", "more than a year"},
		{"sent 10 1 100 3", "\n", "unknown record"},
		{"sent 10 1 100 3\n", "", "counts"},
		{"sent 10 1 100 3", "sent 10 1 100", "unknown record"},
		{"end", "end 6\nend", "line"},
		{"end 6\n", "", "cut short"},
	} {
		_, _, err := Merge("job", []Cluster{{"c", 2}},
			[]io.Reader{strings.NewReader(strings.Replace(first, bad.old, bad.new, 1))})
		if err == nil || !strings.Contains(err.Error(), bad.want) || !strings.HasPrefix(err.Error(), "part 0: line ") {
			t.Errorf("%q: error %v, want one with %q", bad.new, err, bad.want)
		}
	}
	if _, _, err := Merge("job", []Cluster{{"c", 2}}, []io.Reader{strings.NewReader(first),
		strings.NewReader(first)}); err == nil {
		t.Error("two parts of a rank were accepted")
	}
}

// TestClocksAreAligned checks four ranks whose clocks differ, with messages of known times: the
// trace has the messages in their real order. Rank 3 sends nothing to 0, which does not matter.
// Rank 4 exchanges messages in one direction only, so its clock stays.
func TestClocksAreAligned(t *testing.T) {
	ahead := []int64{0, 5000, -7000, 90, 0}
	rs := make([]*Recorder, len(ahead))
	for r := range rs {
		rs[r] = NewRecorder(r, 100)
	}
	var want []Message
	pass := func(start, took int64, src, dst int) {
		rs[src].Sent(start+ahead[src], 0, dst, 1)
		rs[dst].Received(start+took+ahead[dst], 0, src)
		want = append(want, Message{Start: start, End: start + took, Src: src, Dst: dst, Bytes: 1})
	}
	pass(10_000, 100, 0, 1)
	pass(10_150, 100, 1, 0)
	pass(10_300, 400, 1, 0) // a slow message adds no information
	pass(10_800, 60, 1, 2)
	pass(10_900, 60, 2, 1)
	pass(11_000, 900, 0, 2) // a pair of slow messages adds none either
	pass(12_000, 300, 2, 0)
	pass(13_000, 80, 2, 3)
	pass(13_100, 80, 3, 2)
	pass(14_000, 80, 0, 3)
	pass(15_000, 80, 0, 4)
	x, unmatched, err := Merge("job", []Cluster{{"c", 5}}, written(t, rs))
	if err != nil || unmatched != 0 || !reflect.DeepEqual(x.Messages, want) {
		t.Errorf("%v, %d unmatched:\n%v\nwant\n%v", err, unmatched, x.Messages, want)
	}
}

// TestUnseenInsideACluster checks a rank that does not see all messages which it receives inside
// its cluster: the times of that pair are not known, and other pairs are not affected.
func TestUnseenInsideACluster(t *testing.T) {
	rs := []*Recorder{NewRecorder(0, 9), NewRecorder(1, 9), NewRecorder(2, 9)}
	rs[0].Sent(10, 1, 1, 5)
	rs[0].Sent(20, 2, 1, 5)
	rs[1].Received(30, 1, 0) // of an unknown message
	rs[1].Sent(40, 2, 0, 7)
	rs[0].Received(50, 3, 1)
	rs[0].Sent(60, 4, 2, 9)
	rs[2].Received(70, 1, 0)
	x, unmatched, err := Merge("job", []Cluster{{"a", 2}, {"b", 1}}, written(t, rs))
	if err != nil || unmatched != 0 || len(x.Messages) != 2 || x.Messages[0].Src != 1 || x.Messages[1].Dst != 2 ||
		x.Matrix()[[2]int{0, 1}] != 10 {
		t.Errorf("%+v, %d unmatched, %v", x, unmatched, err)
	}
}

// written returns the parts that recorders write.
func written(t *testing.T, rs []*Recorder) (parts []io.Reader) {
	t.Helper()
	for _, r := range rs {
		var b bytes.Buffer
		if err := r.Write(&b, "h"); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, &b)
	}
	return parts
}

func TestRecorderIsConcurrent(t *testing.T) {
	r := NewRecorder(0, 1000)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				r.Sent(int64(i), 0, 1, 1)
				r.Received(int64(i), 0, 1)
			}
		})
	}
	wg.Wait()
	var b bytes.Buffer
	if err := r.Write(&b, "h"); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); !strings.Contains(s, "total 1 2000 2000\n") || strings.Count(s, "sent ") != 1000 {
		t.Errorf("%.80s", s)
	}
}

func BenchmarkRecorder(b *testing.B) {
	r := NewRecorder(0, 1<<20)
	for b.Loop() {
		r.Sent(1, 1, 1, 1)
	}
}

func FuzzMerge(f *testing.F) {
	f.Add("zipper-trace-part 1\nrank 0 h\ntotal 1 2 3\nsent 1 1 3 0\nreceived 5 1 0\nend 4\n")
	f.Fuzz(func(t *testing.T, s string) {
		x, _, err := Merge("job", []Cluster{{"c", 3}}, []io.Reader{strings.NewReader(s)})
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := x.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(&b); err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
	})
}

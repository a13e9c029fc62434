package trace

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func write(t testing.TB, x *Trace) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := x.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const golden = `zipper-trace 1
job cg
cluster a 2
cluster b 1
host 0 a1
total 0 2 3 300
total 0 2 1 5
message 10 20 0 2 100
message 15 15 2 1 0
end 8
`

func TestGolden(t *testing.T) {
	x, err := Read(strings.NewReader(golden))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(write(t, x)); got != golden {
		t.Errorf("written again:\n%s", got)
	}
	if m := x.Matrix(); x.Ranks() != 3 || len(m) != 1 || m[[2]int{0, 2}] != 305 || x.Messages[1].Line != 9 {
		t.Errorf("%+v, matrix %v", x, m)
	}
	x.Totals = nil
	if m := x.Matrix(); m[[2]int{0, 2}] != 100 || len(m) != 2 {
		t.Errorf("matrix of messages %v", m)
	}
}

func TestBadTracesNameTheLine(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{"zipper-trace 1", "", "line 2: not a trace"},
		{"zipper-trace 1", "zipper-trace 2", "line 1: trace of version 2"},
		{"total 0 2 3 300", "totl 0 2 3 300", `line 6: unknown record "totl"`},
		{"total 0 2 3 300", "total 0 2 3", "line 6: total has 3 fields, want 4"},
		{"total 0 2 3 300", "total 0 3 3 300", "line 6: rank 3: the job has 3 ranks"},
		{"total 0 2 3 300", "total 2 2 3 300", "line 6: rank 2 sends to itself"},
		{"total 0 2 3 300", "total 0 2 3 -300", `line 6: "-300" is not a number`},
		{"total 0 2 3 300", "total 0 2 3 NaN", `line 6: "NaN" is not a number`},
		{"message 10 20", "message 20 10", "line 8: message ends"},
		{"end 8", "end 9", "line 10: the end record counts 9"},
		{"end 8\n", "", "line 9: the trace ends without"},
		{"end 8", "end 8\njob x", "line 11: records after"},
		{"cluster a 2", "cluster a 99999999", "line 3: cluster a has"},
		{"message 10", "cluster c 1\nmessage 10", "line 8: clusters must come before"},
		{"job cg", "job " + strings.Repeat("x", 1<<17), "line 2"},
	} {
		_, err := Read(strings.NewReader(strings.Replace(golden, x.old, x.new, 1)))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%.40q: error %v, want one with %q", x.new, err, x.want)
		}
	}
	if _, err := NewWriter(new(bytes.Buffer), "two words", nil); err == nil {
		t.Error("a name of two words was written")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(golden)
	f.Add("zipper-trace 1\ncluster a 2\nmessage 1 2 0 1 3\nend 2\n")
	f.Fuzz(func(t *testing.T, s string) {
		x, err := Read(strings.NewReader(s))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Fatalf("error without a line: %v", err)
			}
			return
		}
		if x.Job == "" {
			x.Job = "none" // a job line is not required
		}
		y, err := Read(bytes.NewReader(write(t, x)))
		if err != nil {
			t.Fatal(err)
		}
		for _, z := range []*Trace{x, y} { // the copy may have other lines
			for i := range z.Totals {
				z.Totals[i].Line = 0
			}
			for i := range z.Messages {
				z.Messages[i].Line = 0
			}
		}
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("%+v\nread again:\n%+v", x, y)
		}
	})
}

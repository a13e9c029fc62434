package calibrate

import (
	"bytes"
	"strings"
	"testing"
)

// TestRails checks that the policy behind the rates over all zippers is found, as far as rates can
// show it.
func TestRails(t *testing.T) {
	pairs := [][2]string{{"a1", "b1"}, {"a2", "b2"}}
	zipper := func(name string, rate float64) Zipper {
		r := []float64{rate, rate}
		ports := map[string][]float64{"a": r, "b": r}
		return Zipper{Name: name, In: ports, Out: ports, Single: map[string][]float64{"a>b": r, "b>a": r}}
	}
	for _, x := range []struct {
		second float64 // rate of the second zipper
		policy string
		want   string
	}{
		{50e6, "spread", "rails: {policy: spread, min: 1000}\n"},
		{50e6, "equal", "rails: {policy: proportional, min: 1000} # equal predicts the same here: not distinguishable"},
		{20e6, "proportional", "rails: {policy: proportional, min: 1000}\n"},
		{20e6, "equal", "rails: {policy: equal, min: 1000}\n"},
	} {
		s := Samples{Clusters: []Cluster{{Name: "a", Hosts: []string{"a1", "a2"}, Lone: []float64{100e6}},
			{Name: "b", Hosts: []string{"b1", "b2"}, Lone: []float64{100e6}}},
			Zippers: []Zipper{zipper("z1", 50e6), zipper("z2", x.second)}}
		var file bytes.Buffer
		if _, err := Write(&file, s); err != nil {
			t.Fatal(err)
		}
		s.Striped = Striped{Pairs: pairs, Bytes: 10e6, Min: 1000}
		rate, err := s.Striped.predicted(file.String() + "rails: {policy: " + x.policy + "}\n")
		if err != nil {
			t.Fatal(err)
		}
		s.Striped.Rates = []float64{.99 * rate, rate, 1.01 * rate}
		file.Reset()
		if _, err := Write(&file, s); err != nil || !strings.Contains(file.String(), x.want) {
			t.Errorf("%s: %v: no %q in\n%s", x.policy, err, x.want, file.String())
		}
	}
}

func TestMemory(t *testing.T) {
	z := Zipper{Copies: []float64{3e9, 3.1e9}, Both: map[string][]float64{"a>b": {1e9}, "b>a": {1e9}}}
	for rate, want := range map[float64]string{1e9: "may be the bottleneck", 1e6: "stayed far below"} {
		z.Both["a>b"][0], z.Both["b>a"][0] = rate, rate
		var b strings.Builder
		if err := z.memory(&b); err != nil || !strings.Contains(b.String(),
			"memory: {bandwidth: 3050000000, crossings: 2}") || !strings.Contains(b.String(), want) {
			t.Errorf("%v: %s", err, b.String())
		}
	}
}

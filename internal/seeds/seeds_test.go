package seeds

import "testing"

func TestSeedsComeFromTheEnvironment(t *testing.T) {
	for s, want := range map[string][2]uint64{"": {}, "7": {7, 8}, "7-9": {7, 9}} {
		t.Setenv(Variable, s)
		if from, to, err := Asked(); err != nil || from != want[0] || to != want[1] {
			t.Errorf("%q: %d to %d, %v", s, from, to, err)
		}
	}
	for _, s := range []string{"x", "-", "7-", "-7", "7-7", "9-7", "1.5", "99999999999999999999"} {
		t.Setenv(Variable, s)
		if from, to, err := Asked(); err == nil || to != 0 {
			t.Errorf("%q: %d to %d", s, from, to)
		}
	}
}

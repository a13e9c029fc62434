package jobenv

import (
	"slices"
	"strings"
	"testing"
)

func TestInPlace(t *testing.T) {
	from := func(inPlace, cache string) (Job, error) {
		return From(func(k string) string {
			return map[string]string{VarJob: "j", VarSecret: goodSecret, VarCluster: "a", VarLayout: "a=1,b=2",
				VarForwarders: "h:1", VarInPlace: inPlace, VarCache: cache}[k]
		})
	}
	for _, c := range []struct {
		inPlace, cache string
		from           int
		keep           bool
		environ        []string
	}{
		{"", "", 1 << 20, false, nil},
		{"", "0", 1 << 20, false, nil},
		{"", "1", 128 << 10, true, []string{VarCache + "=1"}},
		{"5000", "1", 5000, true, []string{VarInPlace + "=5000", VarCache + "=1"}},
		{"0", "", 0, false, []string{VarInPlace + "=0"}},
	} {
		j, err := from(c.inPlace, c.cache)
		got := slices.DeleteFunc(j.Environ(), func(s string) bool {
			return !strings.HasPrefix(s, VarInPlace+"=") && !strings.HasPrefix(s, VarCache+"=")
		})
		if err != nil || j.InPlace != c.from || j.Cache != c.keep || !slices.Equal(got, c.environ) {
			t.Errorf("%+v: %d, %v, %q, %v", c, j.InPlace, j.Cache, got, err)
		}
	}
	for _, c := range [][3]string{{"-1", "", VarInPlace}, {"1M", "", VarInPlace}, {"", "yes", VarCache}} {
		if _, err := from(c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%q: %v", c, err)
		}
	}
}

package addr

import "testing"

func TestSplit(t *testing.T) {
	for s, want := range map[string]struct {
		kind Kind
		rest string
	}{
		"h:1": {KindTCP, "h:1"}, ":0": {KindTCP, ":0"}, "": {KindTCP, ""}, "unix:/run/x": {KindMemory, "/run/x"},
		"verbs:h:1?sl=2": {KindVerbs, "verbs:h:1?sl=2"},
	} {
		if k, rest := Split(s); k != want.kind || rest != want.rest {
			t.Errorf("%q: %v, %q", s, k, rest)
		}
	}
}

func TestWithPort(t *testing.T) {
	for s, want := range map[string]string{
		"": ":7", "h": "h:7", "h:8": "h:8", "10.0.0.1": "10.0.0.1:7", "fe80::1": "[fe80::1]:7",
		"[fe80::1]:8": "[fe80::1]:8", "h:": "h:",
	} {
		if got := WithPort(s, 7); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestVerbs(t *testing.T) {
	for s, want := range map[string]Verbs{
		"h:7475":              {Host: "h:7475", GID: -1},
		"verbs:10.1.0.1:7475": {Host: "10.1.0.1:7475", GID: -1},
		"verbs:[fe80::1]:1":   {Host: "[fe80::1]:1", GID: -1},
		"verbs::0":            {Host: ":0", GID: -1},
		"verbs:h:1?device=mlx5_0:2&gid=3&pkey=0x8001&sl=4": {Host: "h:1", Device: "mlx5_0", Port: 2, GID: 3,
			PKey: 0x8001, SL: 4},
		"verbs:h:1?device=mlx5_0":         {Host: "h:1", Device: "mlx5_0", GID: -1},
		"verbs:h:1?connect=cm":            {Host: "h:1", CM: true, GID: -1},
		"verbs:h:1?connect=cm&timeout=19": {Host: "h:1", CM: true, GID: -1, Timeout: 19},
		"verbs:h:1?connect=tcp":           {Host: "h:1", GID: -1},
	} {
		got, err := ParseVerbs(s)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
			continue
		}
		if back, err := ParseVerbs(got.String()); err != nil || back != want {
			t.Errorf("%s became %s: %+v, %v", s, got, back, err)
		}
	}
	for _, s := range []string{"", "verbs:h", "verbs:h:http", "h:1?device=", "h:1?device=x:0", "h:1?device=x:y",
		"h:1?gid=256", "h:1?sl=16", "h:1?pkey=no", "h:1?speed=9", "h:1?%zz",
		"h:1?connect=ib", "h:1?timeout=0", "h:1?timeout=32", "h:1?timeout=2s", "h:1?connect=cm&sl=4",
		"h:1?connect=cm&device=mlx5_0", "h:1?gid=3&connect=cm"} {
		if a, err := ParseVerbs(s); err == nil {
			t.Errorf("%q: %+v", s, a)
		}
	}
}

func TestCompleteVerbs(t *testing.T) {
	for s, want := range map[string]string{"verbs:zip1": "verbs:zip1:7475", "verbs:": "verbs::7475",
		"verbs:10.1.0.1?gid=3": "verbs:10.1.0.1:7475?gid=3",
		"verbs:h:1?sl=2":       "verbs:h:1?sl=2", "verbs:fe80::1": "verbs:[fe80::1]:7475"} {
		if a, err := CompleteVerbs(s, 7475); err != nil || a.String() != want {
			t.Errorf("%s: %v, %v", s, a, err)
		}
	}
}

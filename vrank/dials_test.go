package vrank

import "testing"

func TestDials(t *testing.T) {
	for _, tc := range []struct {
		name      string
		a, b      LinkEnd
		dials, ok bool
	}{
		{"both can: the lower index", LinkEnd{0, true, true}, LinkEnd{1, true, true}, true, true},
		{"both can: not the higher index", LinkEnd{2, true, true}, LinkEnd{1, true, true}, false, true},
		{"only b listens", LinkEnd{2, false, true}, LinkEnd{1, true, true}, true, true},
		{"only a listens", LinkEnd{0, true, true}, LinkEnd{1, false, true}, false, true},
		{"a has no ranks", LinkEnd{0, true, false}, LinkEnd{1, true, true}, false, true},
		{"a has no ranks, b does not listen", LinkEnd{0, true, false}, LinkEnd{1, false, true}, false, true},
		{"neither listens", LinkEnd{0, false, true}, LinkEnd{1, false, true}, false, false},
		{"neither has ranks", LinkEnd{0, true, false}, LinkEnd{1, true, false}, false, false},
		{"a has no ranks and does not listen", LinkEnd{0, false, false}, LinkEnd{1, true, true}, false, false},
	} {
		dials, ok := Dials(tc.a, tc.b)
		if dials != tc.dials || ok != tc.ok {
			t.Errorf("%s: %v, %v; want %v, %v", tc.name, dials, ok, tc.dials, tc.ok)
		}
		other, ok := Dials(tc.b, tc.a)
		if ok != tc.ok || ok && other == dials {
			t.Errorf("%s, seen from the other end: %v, %v", tc.name, other, ok)
		}
	}
}

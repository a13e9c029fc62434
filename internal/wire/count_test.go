package wire

import (
	"testing"
)

// TestMissingBytesAreDetected checks that bytes which are dropped, repeated or inserted before a
// Count are detected, and a dropped Count with the next one.
func TestMissingBytesAreDetected(t *testing.T) {
	type come struct{ number, bytes, at uint64 }
	for _, c := range []struct {
		name string
		all  []come // the last one is wrong
		want string
	}{
		{"left out", []come{{1, 0, 100}, {2, 500, 600}, {3, 700, 760}}, "40 bytes that were sent have not arrived"},
		{"twice", []come{{1, 50, 0}, {2, 150, 140}}, "40 bytes arrived that were not sent"},
		{"the first", []come{{2, 60, 60}}, "count 2 arrived instead of count 1"},
		{"together with the Count", []come{{1, 0, 0}, {3, 120, 60}}, "60 bytes that were sent have not arrived"},
		{"repeated", []come{{1, 0, 0}, {2, 60, 60}, {2, 60, 120}}, "60 bytes arrived that were not sent"},
		{"exchanged", []come{{1, 0, 0}, {3, 60, 60}}, "count 3 arrived instead of count 2"},
	} {
		var k Counted
		for i, x := range c.all {
			switch err := k.Take(Count{x.number, x.bytes}, x.at); {
			case i < len(c.all)-1 && err != nil:
				t.Errorf("%s: %d: %v", c.name, i, err)
			case i == len(c.all)-1 && (err == nil || err.Error() != c.want):
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
		}
	}
}

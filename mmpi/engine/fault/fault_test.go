package fault

import (
	"errors"
	"fmt"
	"testing"
)

// TestTexts checks that every code but OK has a text of its own.
func TestTexts(t *testing.T) {
	seen := map[string]Code{}
	for c := Truncate; int(c) < len(texts); c++ {
		s := c.String()
		if other, twice := seen[s]; s == "" || twice {
			t.Errorf("code %d: %q, as of %d", c, s, other)
		}
		seen[s] = c
	}
	if Code(99).String() != "error 99" || Code(-1).String() != "error -1" || len(texts) != int(Device)+1 {
		t.Error("codes that there are not")
	}
}

func TestCodeOf(t *testing.T) {
	for want, err := range map[Code]error{
		OK: nil, Internal: errors.New("x"), Link: New(Link, "%d", 1), Arg: fmt.Errorf("wrapped: %w", New(Arg, "y")),
	} {
		if got := CodeOf(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

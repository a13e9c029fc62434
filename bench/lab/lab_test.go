package lab

import (
	"os"
	"testing"
)

// Labs that are up at the same time have different names; the name of one that is down, or whose process is gone, is the next one's.
func TestClaim(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, as the lab does")
	}
	const prefix = "zipper-test-claim"
	t.Cleanup(func() {
		for _, n := range []string{"1", "2"} {
			os.Remove("/run/" + prefix + n + ".lock")
		}
	})
	take := func(want string) *os.File {
		t.Helper()
		name, lock, err := claim(prefix)
		if err != nil || name != prefix+want {
			t.Fatalf("%q, %v, want number %s", name, err, want)
		}
		return lock
	}
	first := take("1")
	second := take("2")
	first.Close()
	first = take("1")
	first.Close()
	second.Close()
}

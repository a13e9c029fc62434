package lab

import (
	"os"
	"testing"
)

// TestLabsHaveDifferentNames checks that labs that are up at the same time have different names,
// and that the next lab gets the name of one that is down, or whose process is gone.
func TestLabsHaveDifferentNames(t *testing.T) {
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

// TestRoutedJobHasOneSlotInEachCluster checks that a routed job of one rank in each cluster finds
// no second slot in the first cluster, because mpirun fills the slots of a host file.
func TestRoutedJobHasOneSlotInEachCluster(t *testing.T) {
	nodes := []string{"a1", "a2"}
	for ranks, want := range []string{"", "a1 slots=1\n", "a1 slots=1\na2 slots=1\n", "a1 slots=2\na2 slots=1\n",
		"a1 slots=2\na2 slots=2\n"} {
		if got := slots(nodes, ranks); got != want {
			t.Errorf("%d ranks: %q, want %q", ranks, got, want)
		}
	}
}

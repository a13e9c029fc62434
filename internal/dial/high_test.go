package dial

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/highfd"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
)

// TestJoinHasHighDescriptor checks that the descriptor that ends a join, which may wait for minutes
// while the program runs, has a number that a program does not get for its files.
func TestJoinHasHighDescriptor(t *testing.T) {
	l, other := memnet.Pipe(memnet.Options{})
	defer l.Close()
	defer other.Close()
	b, err := newBlocking(t.Context(), l, silence{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if b.cancel < highfd.Floor() {
		t.Errorf("the descriptor is %d, below %d", b.cancel, highfd.Floor())
	}
}

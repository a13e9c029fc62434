package tcp

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestUnsentIsSegment checks that a socket holds one unsent segment. The transport must not depend
// on frames, so only this test keeps the two numbers equal.
func TestUnsentIsSegment(t *testing.T) {
	if Unsent != wire.SegmentSize {
		t.Errorf("%d bytes unsent, segments of %d", Unsent, wire.SegmentSize)
	}
}

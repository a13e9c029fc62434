package link

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestAbortReasonIsText checks that the reason in an Abort of another host cannot move the cursor
// of the user's terminal.
func TestAbortReasonIsText(t *testing.T) {
	for _, rank := range []uint32{wire.Nobody, 3} {
		got := abortReason(wire.Abort{Code: 7, Rank: rank, By: wire.Nobody, Reason: "\x1b[2J\r\n"})
		for _, c := range got {
			if c < ' ' {
				t.Errorf("%q", got)
			}
		}
	}
}

package command

import "time"

const (
	// lingers is how long a command may go on when its link is closed, 5 s: some round trips of the
	// longest path, for what is still on its way.
	lingers = 5 * time.Second

	// looks is how often, while a command gets there, it is seen whether it has ended, or is wanted
	// no more, 20 ms.
	looks = 20 * time.Millisecond

	// maxVec is how many buffers are written at once, 64: more than a frame has.
	maxVec = 64

	// maxLine is how many bytes of a line are kept, 1 KiB.
	maxLine = 1 << 10
)

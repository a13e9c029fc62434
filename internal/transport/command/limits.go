package command

import "time"

const (
	// lingers is the time for which a command may run on after its link is closed, 5 s: some round
	// trips of the longest path, for the bytes in flight.
	lingers = 5 * time.Second

	// looks is the interval of checks, while a command connects, whether it has ended or Dial was
	// cancelled, 20 ms.
	looks = 20 * time.Millisecond

	// maxVec is the largest number of buffers of one write, 64: more than a frame has.
	maxVec = 64

	// maxLine is the number of bytes of a line that are kept, 1 KiB.
	maxLine = 1 << 10
)

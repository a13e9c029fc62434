package wire

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/crc32c"
)

// Sums detect frames that were damaged in transit. Each reader of a header checks its sum, at every
// level, because a forwarder that follows a wrong length never finds the next frame. The sums of
// body and payload are checked at the final destination. For frames between ranks the receiving
// rank checks them at LevelChecked, before it uses the body or completes a receive. Those of frames
// between the two ends of a link are always checked. Sealed frames only have the sum of the header,
// because their tags are better.

// ErrSum means that a frame was damaged in transit.
var ErrSum = errors.New("damaged in transit (checksum)")

// checkAt is the offset of a header's own sum.
const checkAt = HeaderLen - 4

// Sum returns the CRC32C of b. It does not allocate.
func Sum(b []byte) uint32 { return crc32c.Sum(b) }

// SumMore continues the sum of the bytes before b, and returns the new sum.
func SumMore(sum uint32, b []byte) uint32 { return crc32c.Update(sum, b) }

// SumFrame sets the sums of a whole frame between ranks whose header has none yet.
func SumFrame(frame []byte) {
	body := HeaderLen + Type(frame[0]).BodyLen()
	le.PutUint32(frame[checkAt-8:], Sum(frame[HeaderLen:body]))
	le.PutUint32(frame[checkAt-4:], Sum(frame[body:]))
	SumHeader(frame)
}

// SumHeader sets the header's own sum in a frame whose header has none yet.
func SumHeader(frame []byte) { le.PutUint32(frame[checkAt:], Sum(frame[:checkAt])) }

// MarkResent sets FlagResent in a whole frame that has its sums.
func MarkResent(frame []byte) {
	frame[1] |= FlagResent
	SumHeader(frame)
}

// FixSums sets correct sums in the frames of a stream, in place, up to the first frame that no
// reader accepts. It is for tests with random streams, which would rarely pass the check of a sum.
func FixSums(b []byte) {
	for len(b) >= HeaderLen {
		SumHeader(b)
		h, err := ParseHeader(b)
		if err != nil || len(b)-HeaderLen < int(h.Length) {
			return
		}
		frame := b[:HeaderLen+int(h.Length)]
		switch {
		case h.Flags&FlagSealed != 0:
		case h.Type.BetweenRanks():
			SumFrame(frame)
		default:
			h.BodySum = Sum(frame[HeaderLen:])
			h.Append(frame[:0])
		}
		b = b[len(frame):]
	}
}

// Verify checks the body of a frame against the header's sum.
func (h *Header) Verify(body []byte) error {
	if Sum(body) != h.BodySum {
		return ErrSum
	}
	return nil
}

// Level is the protection of a job's frames in transit. All ranks of a job have the same.
type Level uint8

// These are the levels. Each includes the protection of those before it.
const (
	LevelPlain   Level = 0 // headers are checked, bodies and payloads are not
	LevelChecked Level = 1 // the rank that receives a frame detects damage to any bit of it
	LevelSealed  Level = 2 // frames are authenticated and encrypted from rank to rank (package seal)
)

var levelNames = [...]string{"plain", "checked", "sealed"}

// Levels returns the names that ParseLevel accepts, the weakest first.
func Levels() []string { return append([]string(nil), levelNames[:]...) }

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// ParseLevel parses a level's name.
func ParseLevel(s string) (Level, error) {
	for i, name := range levelNames {
		if s == name {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("level %q: want one of %v", s, levelNames)
}

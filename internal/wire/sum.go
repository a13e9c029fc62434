package wire

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/crc32c"
)

// Sums tell frames that were damaged on their way. That of a header is checked by whoever reads it,
// at every level: a forwarder that follows a wrong length never finds the next frame. Those of body
// and payload are checked at the end of the frame's way: of frames between ranks by the receiving
// rank, at LevelChecked, before it acts on the body or tells the program of the payload; of frames
// between the two ends of a link always. Sealed frames have none but the header's: their tags are
// better.

// ErrSum reports that what has arrived is not what was sent.
var ErrSum = errors.New("damaged on its way (checksum)")

// checkAt is where a header's own sum is.
const checkAt = HeaderLen - 4

// Sum is the CRC32C of b. It does not allocate.
func Sum(b []byte) uint32 { return crc32c.Sum(b) }

// SumMore goes on with the sum of what is before b.
func SumMore(sum uint32, b []byte) uint32 { return crc32c.Update(sum, b) }

// SumFrame puts the sums into a whole frame between ranks whose header has none yet.
func SumFrame(frame []byte) {
	body := HeaderLen + Type(frame[0]).BodyLen()
	le.PutUint32(frame[checkAt-8:], Sum(frame[HeaderLen:body]))
	le.PutUint32(frame[checkAt-4:], Sum(frame[body:]))
	SumHeader(frame)
}

// SumHeader puts the header's own sum into a frame whose header has none yet.
func SumHeader(frame []byte) { le.PutUint32(frame[checkAt:], Sum(frame[:checkAt])) }

// MarkAgain puts FlagAgain into a whole frame that has its sums.
func MarkAgain(frame []byte) {
	frame[1] |= FlagAgain
	SumHeader(frame)
}

// Mend puts right sums into the frames of a stream, in place, up to the first that no reader takes.
// For tests that make streams up: next to nothing of what is made at random gets past a sum.
func Mend(b []byte) {
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

// Verify checks the body of a frame.
func (h *Header) Verify(body []byte) error {
	if Sum(body) != h.BodySum {
		return ErrSum
	}
	return nil
}

// Level is how far a job trusts what its frames travel over. All ranks of a job have the same.
type Level uint8

// Levels, each with what those before it do.
const (
	LevelPlain   Level = 0 // headers are checked, bodies and payloads are not
	LevelChecked Level = 1 // damage to any bit of a frame is noticed by the rank that receives it
	LevelSealed  Level = 2 // so is what others do to it on purpose, and nobody on the way can read it (package seal)
)

var levelNames = [...]string{"plain", "checked", "sealed"}

// Levels are the words that ParseLevel knows, the weakest first.
func Levels() []string { return append([]string(nil), levelNames[:]...) }

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// ParseLevel reads a level's name.
func ParseLevel(s string) (Level, error) {
	for i, name := range levelNames {
		if s == name {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("level %q: want one of %v", s, levelNames)
}

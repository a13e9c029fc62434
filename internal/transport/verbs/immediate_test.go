package verbs

import "testing"

func TestImmediate(t *testing.T) {
	for _, c := range []struct {
		kind, value int
		number      uint64
		length      int
	}{
		{ofBytes, 0, 0, 0}, {ofBytes, 8192, 8191, 8192}, {ofBytes, 1 << 20, 1 << 40, 1 << 20},
		{ofPiece, maxBlocks - 1, 8192, 132 << 10},
		{noteExpect, 44, 3, 44}, {notePlaced, 64, 5, 64}, {creditSlots, maxSlots, 77, 0}, {creditBlock, 255, 78, 0},
	} {
		i := makeImmediate(c.kind, c.value, c.number)
		if i.kind() != c.kind || i.value() != c.value&0xffff {
			t.Errorf("%+v: kind %d, value %d", c, i.kind(), i.value())
		}
		if err := i.whole(c.number, c.length); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		// These are the largest differences that a message in flight can have.
		for _, d := range []uint64{1, 2, maxSlots + maxBlocks} {
			if i.whole(c.number+d, c.length) == nil || i.whole(c.number-d, c.length) == nil {
				t.Errorf("%+v: taken for one %d before or after it", c, d)
			}
		}
		// The message is cut, or has a packet twice.
		for _, d := range []int{256, 1024, 4096} {
			if c.kind != ofPiece && (i.whole(c.number, c.length+d) == nil ||
				c.length >= d && i.whole(c.number, c.length-d) == nil) {
				t.Errorf("%+v: %d bytes more or less taken for the whole", c, d)
			}
		}
	}
}

package verbs

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// sent returns the part of a hello that the communication manager's messages carry.
func sent() (hello, endpoint) {
	h := example()
	return hello{slots: h.slots, slotSize: h.slotSize, nonce: h.nonce, blocks: h.blocks}, endpoint{0x123456, 0xabcdef}
}

func TestPrivateGolden(t *testing.T) {
	const want = "5a495056" + "0400" + "4000" + "00200000" + "563412" + "efcdab" + "0800" + "00100200" +
		"0504030201" + "7f0000" + "2b1a0000" +
		"f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
	h, second := sent()
	b := h.private(second)
	if got := hex.EncodeToString(b); got != want || len(b) != privateLen {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, again, err := parsePrivate(append(b, 0, 0, 0, 0))
	if err != nil || back != h || again != second {
		t.Errorf("parsed: %+v, %+v, %v", back, again, err)
	}
	for n := range b {
		if _, _, err := parsePrivate(b[:n]); err == nil {
			t.Errorf("%d bytes taken", n)
		}
	}
}

func TestPrivateBounds(t *testing.T) {
	for name, spoil := range map[string]func(*hello, *endpoint){
		"few slots":    func(h *hello, _ *endpoint) { h.slots = minSlots - 1 },
		"many slots":   func(h *hello, _ *endpoint) { h.slots = maxSlots + 1 },
		"large slots":  func(h *hello, _ *endpoint) { h.slotSize = 1 << 31 },
		"no blocks":    func(h *hello, _ *endpoint) { h.blocks.n = 0 },
		"large blocks": func(h *hello, _ *endpoint) { h.blocks.size = maxBlock + 1 },
		"no pair":      func(_ *hello, e *endpoint) { e.qpn = 0 },
	} {
		h, second := sent()
		spoil(&h, &second)
		if _, _, err := parsePrivate(h.private(second)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestReason(t *testing.T) {
	for reason, want := range map[string]string{"no port": "refused: no port", "": "refused: ",
		"a\x1b]b": "refused: a?]b", strings.Repeat("x", 500): "refused: " + strings.Repeat("x", reasonLen)} {
		b := privateReason(errors.New(reason))
		var r refusal
		if err := parseReason(append(b, make([]byte, 148-len(b))...)); !errors.As(err, &r) || err.Error() != want {
			t.Errorf("%q: %v", reason, err)
		}
	}
	b := privateReason(errors.New("a reason"))
	for n := range b {
		if err := parseReason(b[:n]); errors.As(err, new(refusal)) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func FuzzPrivate(f *testing.F) {
	h, second := sent()
	f.Add(h.private(second))
	f.Add(privateReason(errors.New("a reason")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if parseReason(b) == nil {
			t.Error("a reason that is no error")
		}
		h, second, err := parsePrivate(b)
		if err != nil {
			return
		}
		again, second2, err := parsePrivate(h.private(second))
		if err != nil || again != h || second2 != second {
			t.Errorf("%+v, %+v became %+v, %+v, %v", h, second, again, second2, err)
		}
	})
}

package wire

import (
	"errors"
	"testing"
)

// TestSums checks the sums of a frame's body and payload, against the polynomial's check value.
func TestSums(t *testing.T) {
	if got := Sum([]byte("123456789")); got != 0xe3069283 {
		t.Errorf("CRC32C is %08x", got)
	}
	e := Envelope{Context: 1, Size: 9}
	h := Header{Type: TypeEager, Length: EnvelopeLen + 9}
	b := append(e.Append(h.Append(nil)), "123456789"...)
	SumFrame(b)
	h, err := ParseHeader(b)
	if err != nil || h.PayloadSum != 0xe3069283 || h.Verify(b[HeaderLen:HeaderLen+EnvelopeLen]) != nil {
		t.Errorf("%+v, %v", h, err)
	}
	b[HeaderLen] ^= 1
	if err := h.Verify(b[HeaderLen : HeaderLen+EnvelopeLen]); !errors.Is(err, ErrSum) {
		t.Errorf("a damaged body: %v", err)
	}
	if got := SumMore(Sum([]byte("1234")), []byte("56789")); got != 0xe3069283 {
		t.Errorf("in two parts %08x", got)
	}
	for _, name := range Levels() {
		if l, err := ParseLevel(name); err != nil || l.String() != name {
			t.Errorf("level %s: %v, %v", name, l, err)
		}
	}
	if l, err := ParseLevel("strong"); err == nil {
		t.Errorf("level strong is %v", l)
	}
}

package verbs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
)

func example() hello {
	h := hello{layer: 2, mtu: 3, lid: 0x1234, slots: 64, slotSize: 8192, out: endpoint{0x11, 0xabcdef},
		in:     endpoint{0x12, 0x1},
		blocks: remoteBlocks{8, 132 << 10, 0x7f0102030405, 0x1a2b}}
	for i := range h.gid {
		h.gid[i], h.nonce[i] = byte(i), byte(0xf0+i)
	}
	return h
}

func TestHelloGolden(t *testing.T) {
	const want = "5a495056" + "04020300" + "34120000" + "40000000" + "00200000" + "000102030405060708090a0b0c0d0e0f" +
		"11000000" + "efcdab00" + "12000000" + "01000000" + "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff" +
		"08000000" + "00100200" + "0504030201" + "7f0000" + "2b1a0000"
	h := example()
	b := h.bytes()
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := parseHello(append(b, "from a later version"...))
	if err != nil || back != h {
		t.Errorf("parsed: %+v, %v", back, err)
	}
	for n := range b {
		if _, err := parseHello(b[:n]); err == nil {
			t.Errorf("%d bytes taken for a hello", n)
		}
	}
}

func TestHelloBounds(t *testing.T) {
	for name, spoil := range map[string]func(*hello){
		"mtu 0":        func(h *hello) { h.mtu = 0 },
		"mtu 6":        func(h *hello) { h.mtu = 6 },
		"few slots":    func(h *hello) { h.slots = minSlots - 1 },
		"many slots":   func(h *hello) { h.slots = 1 << 31 },
		"small slots":  func(h *hello) { h.slotSize = 0 },
		"large slots":  func(h *hello) { h.slotSize = maxSlotSize + 1 },
		"no blocks":    func(h *hello) { h.blocks.n = 0 },
		"many blocks":  func(h *hello) { h.blocks.n = maxBlocks + 1 },
		"small blocks": func(h *hello) { h.blocks.size = minBlock - 1 },
		"large blocks": func(h *hello) { h.blocks.size = maxBlock + 1 },
		"qpn":          func(h *hello) { h.in.qpn = 1 << 24 },
		"psn":          func(h *hello) { h.out.psn = 1 << 31 },
	} {
		h := example()
		spoil(&h)
		if _, err := parseHello(h.bytes()); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	h := example()
	b := h.bytes()
	b[4] = 9
	if _, err := parseHello(b); err == nil || !strings.Contains(err.Error(), "same release") {
		t.Errorf("other version: %v", err)
	}
}

func TestExchangeMessages(t *testing.T) {
	var b bytes.Buffer
	send(&b, kindReady, nil)
	refuse(&b, errors.New("no\x1b[31m such port"))
	if _, err := receive(&b, kindReady); err != nil {
		t.Error(err)
	}
	var r refusal
	if _, err := receive(&b, kindReady); !errors.As(err, &r) || strings.ContainsRune(err.Error(), 0x1b) {
		t.Errorf("refusal: %q", err)
	}
	for _, s := range []string{"SSH-2.0-OpenSSH", "\x01\xff\xff", "\x00\x00\x00"} {
		if _, err := receive(strings.NewReader(s), kindHello); err != errForeign {
			t.Errorf("%q: %v", s, err)
		}
	}
	send(&b, kindProven, nil)
	if _, err := receive(&b, kindReady); err == nil {
		t.Error("took one message for another")
	}
	if _, err := receive(strings.NewReader("\x01\x05\x00abc"), kindHello); err != io.ErrUnexpectedEOF {
		t.Errorf("cut off: %v", err)
	}
}

func FuzzHello(f *testing.F) {
	h := example()
	f.Add(h.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHello(b)
		if err != nil {
			return
		}
		again, err := parseHello(h.bytes())
		if err != nil || again != h {
			t.Errorf("%+v became %+v, %v", h, again, err)
		}
	})
}

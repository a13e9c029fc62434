package delayline

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"
)

// large returns a frame that stands for many TCP packets, in the kernel's form.
func large(ipv6 bool, size, payload int) []byte {
	ip, kind, etherType := 20, byte(gsoTCPv4), uint16(typeIPv4)
	if ipv6 {
		ip, kind, etherType = 40, gsoTCPv6, typeIPv6
	}
	tcp := ethernetBytes + ip
	const options = 12
	b := make([]byte, HeaderBytes+tcp+20+options+payload)
	b[0], b[1] = 1, kind // a checksum is missing
	binary.NativeEndian.PutUint16(b[2:], 200)
	binary.NativeEndian.PutUint16(b[4:], uint16(size))
	binary.NativeEndian.PutUint16(b[6:], uint16(tcp))
	binary.NativeEndian.PutUint16(b[8:], 16)
	f := b[HeaderBytes:]
	for i := range f[tcp:] {
		f[tcp+i] = byte(i * i >> 3)
	}
	binary.BigEndian.PutUint16(f[12:], etherType)
	p := f[ethernetBytes:]
	for i := range ip {
		p[i] = byte(3 * i)
	}
	if ipv6 {
		p[0], p[6] = 0x60, 6
		binary.BigEndian.PutUint16(p[4:], uint16(20+options+payload))
	} else {
		p[0], p[9] = 0x45, 6
		binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
		binary.BigEndian.PutUint16(p[4:], 0xfffe) // the identification wraps around
	}
	h := f[tcp:]
	binary.BigEndian.PutUint32(h[4:], 0xfffffff0) // so does the sequence number
	h[12], h[13] = (20+options)/4<<4, 0x10|tcpFIN|tcpPSH|tcpCWR
	binary.BigEndian.PutUint16(h[16:], pseudo(f, tcp))
	return b
}

// pseudo returns the sum of the pseudo header, which is in the checksum's place until the rest is
// known.
func pseudo(f []byte, tcp int) uint16 {
	addresses := f[ethernetBytes+12 : ethernetBytes+20]
	if tcp == ethernetBytes+40 {
		addresses = f[ethernetBytes+8 : ethernetBytes+40]
	}
	return fold(uint32(sum(addresses)) + 6 + uint32(len(f)-tcp))
}

// TestEachPieceIsAPacketOfItsOwn checks that every packet of a frame looks as if it had been sent
// alone, with any losses around it.
func TestEachPieceIsAPacketOfItsOwn(t *testing.T) {
	const size, payload = 1448, 20*1448 + 17
	for _, c := range []struct {
		name string
		ipv6 bool
		lose []int // packets that do not pass
	}{{"4", false, nil}, {"6", true, nil}, {"4 with gaps", false, []int{0, 3, 4, 19}},
		{"6 with gaps", true, []int{2, 20}}} {
		t.Run(c.name, func(t *testing.T) {
			whole := large(c.ipv6, size, payload)
			form := look(whole)
			if form.packets() != 21 || form.payload != payload {
				t.Fatalf("%+v", form)
			}
			w := way(t, Options{Delay: time.Millisecond, Rate: 1e9, MTU: 1500})
			lost := map[int]bool{}
			for _, k := range c.lose {
				lost[k] = true
			}
			offer(w, whole, lost)
			tcp, next := int(binary.NativeEndian.Uint16(whole[6:])), 0
			for {
				due, ok := w.Next()
				if !ok {
					break
				}
				head, rest := w.Take(due)
				b := append(bytes.Clone(head), rest...)
				for lost[next] {
					next++
				}
				begin, _ := form.part(next, next+1)
				f, h := b[HeaderBytes:], b[HeaderBytes+tcp:]
				if !bytes.Equal(f[form.headers:], whole[HeaderBytes+begin:HeaderBytes+begin+len(rest)]) {
					t.Fatalf("the payload from packet %d on has changed", next)
				}
				if got := binary.BigEndian.Uint16(h[16:]); fold(uint32(got)) != pseudo(f, tcp) {
					t.Errorf("packet %d: checksum %#x, want %#x", next, got, pseudo(f, tcp))
				}
				if !c.ipv6 && sum(f[ethernetBytes:ethernetBytes+20]) != 0xffff {
					t.Errorf("packet %d: the IP header's checksum is wrong", next)
				}
				if c.ipv6 && int(binary.BigEndian.Uint16(f[ethernetBytes+4:])) != len(f)-tcp {
					t.Errorf("packet %d: payload length", next)
				}
				if got, want := binary.BigEndian.Uint32(h[4:]), uint32(0xfffffff0+next*size&0xffffffff); got != want {
					t.Errorf("packet %d: sequence number %#x, want %#x", next, got, want)
				}
				n := (len(rest) + size - 1) / size
				if last := next+n == 21; (h[13]&tcpFIN != 0) != last || (h[13]&tcpPSH != 0) != last ||
					(h[13]&tcpCWR != 0) != (next == 0) {
					t.Errorf("packets %d to %d: flags %#x", next, next+n-1, h[13])
				}
				if one := n == 1; (b[1] == gsoNone) != one {
					t.Errorf("%d packets, and gso_type is %d", n, b[1])
				}
				next += n
			}
			for lost[next] {
				next++
			}
			if next != 21 {
				t.Errorf("only %d packets came", next)
			}
		})
	}
}

// offer puts a frame on the way of which some packets are lost, as Offer does at random.
func offer(w *Way, frame []byte, lost map[int]bool) {
	n := copy(w.Room(), frame)
	if len(lost) == 0 {
		w.Offer(n, 0)
		return
	}
	at, form := w.end, look(frame)
	w.end = at + n
	for k := range form.packets() {
		if !lost[k] {
			w.push(piece{due: time.Duration(k), at: at, form: form, from: k, to: k + 1})
		}
	}
}

// TestPieceLeavesWithinTheSpan checks that a piece takes no longer on the line than Span, and that
// single packets of a large frame are lost.
func TestPieceLeavesWithinTheSpan(t *testing.T) {
	w := way(t, Options{Rate: 1e9, MTU: 1500, Loss: 0.05, Seed: 3})
	packets := 0
	for i := range 200 {
		n := copy(w.Room(), large(false, 1448, 40*1448))
		w.Offer(n, time.Duration(i)*time.Millisecond)
		for {
			due, ok := w.Next()
			if !ok {
				break
			}
			_, rest := w.Take(due)
			if k := (len(rest) + 1447) / 1448; k < 1 || k > 9 {
				t.Fatalf("a piece of %d packets", k)
			} else {
				packets += k
			}
		}
	}
	s := w.Stats()
	if uint64(packets) != s.Packets || s.Packets+s.Lost != 8000 || s.Lost < 300 || s.Lost > 500 {
		t.Errorf("%d packets came; %+v", packets, s)
	}
}

// FuzzLook checks that invalid frames do no harm.
func FuzzLook(f *testing.F) {
	f.Add(large(false, 1448, 5000))
	f.Add(large(true, 1448, 5000))
	f.Add(make([]byte, HeaderBytes+ethernetBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := way(t, Options{Rate: 1e9, MTU: 1500})
		room := w.Room()
		n := copy(room[:MaxFrame], b)
		w.Offer(n, 0)
		total := 0
		for {
			due, ok := w.Next()
			if !ok {
				break
			}
			head, payload := w.Take(due)
			if len(head) < HeaderBytes+ethernetBytes {
				t.Fatal(fmt.Sprint("a head of ", len(head), " bytes"))
			}
			total += len(payload)
		}
		if total > len(b) {
			t.Fatal("more came out than went in")
		}
	})
}

package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// sample is one body with its bytes: the specification of the format.
type sample struct {
	name  string
	typ   Type
	body  Body
	hex   string
	parse func([]byte) (any, error)
	// tail: a payload may follow, so more bytes are no error.
	tail bool
}

func parser[T any](f func([]byte) (T, error)) func([]byte) (any, error) {
	return func(b []byte) (any, error) {
		v, err := f(b)
		return &v, err
	}
}

func ramp[A [16]byte | [32]byte | [64]byte](first byte) A {
	var a A
	for i := range len(a) {
		a[i] = first + byte(i)
	}
	return a
}

const ramp32 = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

const ramp64 = ramp32 + "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"

const zero32 = "0000000000000000000000000000000000000000000000000000000000000000"

var samples = []sample{
	{"envelope", TypeEager, &Envelope{Context: 0xFFFFFFFF00000000, Tag: -2, Kind: KindCollective, Size: 0x0102030405060708, Handle: 9},
		"00000000ffffffff" + "feffffff" + "01000000" + "0807060504030201" + "0900000000000000", parser(ParseEnvelope), true},
	{"cts", TypeCTS, &CTS{1, 2, 0x1000}, "0100000000000000" + "0200000000000000" + "0010000000000000", parser(ParseCTS), false},
	{"data", TypeData, &Data{3, 0x10000}, "0300000000000000" + "0000010000000000", parser(ParseData), true},
	{"fin", TypeFin, &Fin{4}, "0400000000000000", parser(ParseFin), false},
	{"matched", TypeMatched, &Matched{5}, "0500000000000000", parser(ParseMatched), false},
	{"credit", TypeCredit, &Credit{6, 7}, "0600000000000000" + "0700000000000000", parser(ParseCredit), false},
	{"cancel", TypeCancel, &Cancel{8}, "0800000000000000", parser(ParseCancel), false},
	{"cancel reply, yes", TypeCancelReply, &CancelReply{9, true}, "0900000000000000" + "0100000000000000", parser(ParseCancelReply), false},
	{"cancel reply, no", TypeCancelReply, &CancelReply{9, false}, "0900000000000000" + "0000000000000000", parser(ParseCancelReply), false},
	{"challenge", TypeChallenge, &Challenge{Version, Oldest, ramp[[32]byte](0), true, ramp[[32]byte](0), ramp[[32]byte](0)}, "0a000000" + "0a000000" + ramp32 + "01000000" + ramp32 + ramp32, parser(ParseChallenge), false},
	{"join", TypeJoin, &Join{Version: Version, TimeoutMS: 60000, Job: "j1", Cluster: "b", Rank: 1, TagUB: 0x7fffffff, Library: "MPICH", Model: "lp64", Protocol: "classic", Settings: "A=1", Host: "h2", Origin: "u", Level: LevelSealed, Patience: 30000, Rails: 2, Instance: 0x0102030405060708,
		Layout: []Cluster{{"a", 1}, {"b", 2}}, Networks: []string{"w"}, Zippers: []Zipper{{Ports: []Port{{0, "x"}, {1, "yz"}}, HostKey: ramp[[32]byte](0)}, {Ports: []Port{{2, ""}}}}, Here: 1, Doors: []Port{{0, "d"}}, Inside: "i", SealKey: ramp[[32]byte](0), Proof: ramp[[16]byte](0), LinkKey: ramp[[32]byte](0), Ticket: "t", Nonce: ramp[[32]byte](0), PublicKey: ramp[[32]byte](0), Signature: ramp[[64]byte](0)},
		"0a000000" + "60ea0000" + "0200" + "6a31" + "0100" + "62" + "01000000" + "ffffff7f" + "0500" + "4d50494348" + "0400" + "6c703634" + "0700" + "636c6173736963" + "0300" + "413d31" + "0200" + "6832" + "0100" + "75" + "0200" + "30750000" + "0200" + "0807060504030201" +
			"0200" + "0100" + "61" + "01000000" + "0100" + "62" + "02000000" + "0100" + "0100" + "77" + "0200" + "0200" + "0000" + "0100" + "78" + "0100" + "0200" + "797a" + ramp32 + "0100" + "0200" + "0000" + zero32 + "0100" + "0100" + "0000" + "0100" + "64" + "0100" + "69" + ramp32 + ramp32[:32] + ramp32 + "0100" + "74" + ramp32 + ramp32 + ramp32 +
			"202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f", parser(ParseJoin), false},
	{"bridge", TypeBridge, &Bridge{Version: Version, From: 1, To: 0, Number: 3, Nonce: ramp[[32]byte](0), Fresh: ramp[[32]byte](0), OwnKey: ramp[[32]byte](0), LinkKey: ramp[[32]byte](0), HostKey: ramp[[32]byte](0), Proof: ramp[[64]byte](0), Signature: ramp[[64]byte](0), Join: Join{Version: Version, Rails: 1, Job: "j", Cluster: "b",
		Layout: []Cluster{{"b", 1}}, Zippers: []Zipper{{Ports: []Port{{0, "x"}}}, {Ports: []Port{{0, "y"}}}}, Here: 1, PublicKey: ramp[[32]byte](0), Signature: ramp[[64]byte](0)}},
		"0a000000" + "0100" + "0000" + "0300" + ramp32 + ramp32 + ramp32 + ramp32 + ramp32 + ramp64 + ramp32 + "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f" +
			"0a000000" + "00000000" + "0100" + "6a" + "0100" + "62" + "00000000" + "00000000" + "0000" + "0000" + "0000" + "0000" + "0000" + "0000" + "0000" + "00000000" + "0100" + "0000000000000000" +
			"0100" + "0100" + "62" + "01000000" + "0000" + "0200" + "0100" + "0000" + "0100" + "78" + zero32 + "0100" + "0000" + "0100" + "79" + zero32 + "0100" + "0000" + "0000" + strings.Repeat("00", 80) + "0000" + zero32 + ramp32 + ramp32 +
			"202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f", parser(ParseBridge), false},
	{"proof", TypeProof, &Proof{ramp[[64]byte](0)}, ramp64, parser(ParseProof), false},
	{"half", TypeHalf, &Half{Version: Version, TimeoutMS: 60000, RanMS: 1000, State: HalfSuspended, Code: -2, Job: "j1", Cluster: "b", Reason: "né", Ticket: "t", PublicKey: ramp[[32]byte](0), Signature: ramp[[64]byte](0)},
		"0a000000" + "60ea0000" + "e8030000" + "0200" + "feffffff" + "0200" + "6a31" + "0100" + "62" + "0300" + "6ec3a9" + "0100" + "74" + ramp32 + ramp64, parser(ParseHalf), false},
	{"ready", TypeReady, &Ready{2}, "02000000", parser(ParseReady), false},
	{"meet", TypeMeet, &Meet{1, 2, 0x0102030405060708, ramp[[32]byte](0), ramp[[64]byte](0)}, "01000000" + "02000000" + "0807060504030201" + ramp32 + ramp32 +
		"202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f", parser(ParseMeet), false},
	{"layout", TypeLayout, &Layout{Rank: 2, TagUB: 0xfffffff, Clusters: []Cluster{{"a", 1}, {"b", 2}}, Libraries: []string{"X", ""}, Hosts: []string{"h1", "h2"}, Where: []uint32{0, 1, 1},
		Doors: []Door{{2, 0x0102030405060708, Port{0, "d"}}}},
		"02000000" + "ffffff0f" + "0200" + "0100" + "61" + "01000000" + "0100" + "62" + "02000000" + "0200" + "0100" + "58" + "0000" +
			"02000000" + "0200" + "6831" + "0200" + "6832" + "00000000" + "01000000" + "01000000" + "01000000" + "02000000" + "0807060504030201" + "0000" + "0100" + "64" + "00000000", parser(ParseLayout), false},
	{"layout of a sealed job", TypeLayout, &Layout{Rank: 0, TagUB: 1, Clusters: []Cluster{{"a", 1}}, Libraries: []string{""}, Hosts: []string{"h"}, Where: []uint32{0},
		Keys: []SealKey{{0x0102030405060708, ramp[[32]byte](0), ramp[[16]byte](0)}}},
		"00000000" + "01000000" + "0100" + "0100" + "61" + "01000000" + "0100" + "0000" + "01000000" + "0100" + "68" + "00000000" + "00000000" +
			"01000000" + "0807060504030201" + ramp32 + ramp32[:32], parser(ParseLayout), false},
	{"refuse", TypeRefuse, &Refuse{RefuseSecret, "né"}, "03000000" + "0300" + "6ec3a9", parser(ParseRefuse), false},
	{"notice", TypeNotice, &Notice{"né"}, "0300" + "6ec3a9", parser(ParseNotice), false},
	{"count", TypeCount, &Count{3, 0x0102030405060708}, "0300000000000000" + "0807060504030201", parser(ParseCount), false},
	{"landed", TypeLanded, &Landed{6}, "0600000000000000", parser(ParseLanded), false},
	{"echo", TypeEcho, &Echo{7}, "0700000000000000", parser(ParseEcho), false},
	{"rail state", TypeRailState, &RailState{3, false, false, false, "why"}, "03000000" + "00000000" + "0300" + "776879", parser(ParseRailState), false},
	{"rail state, up", TypeRailState, &RailState{4, true, false, false, ""}, "04000000" + "01000000" + "0000", parser(ParseRailState), false},
	{"rail state, gone", TypeRailState, &RailState{5, false, true, false, ""}, "05000000" + "02000000" + "0000", parser(ParseRailState), false},
	{"rail state, cut", TypeRailState, &RailState{6, false, false, true, "why"}, "06000000" + "03000000" + "0300" + "776879", parser(ParseRailState), false},
	{"abort", TypeAbort, &Abort{-1, 3, "why", 2, ramp[[16]byte](0)}, "ffffffff" + "03000000" + "0300" + "776879" + "02000000" + ramp32[:32], parser(ParseAbort), false},
}

func TestGolden(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			want, err := hex.DecodeString(s.hex)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.body.Append([]byte("before")); !bytes.Equal(got, append([]byte("before"), want...)) {
				t.Errorf("bytes %x, want %s", got[6:], s.hex)
			}
			got, err := s.parse(want)
			if err != nil || !reflect.DeepEqual(got, s.body) {
				t.Errorf("parsed %+v, %v; want %+v", got, err, s.body)
			}
			for n := range len(want) {
				if v, err := s.parse(want[:n]); err == nil {
					t.Errorf("prefix of %d bytes parsed as %+v", n, v)
				}
			}
			_, err = s.parse(append(bytes.Clone(want), 0))
			if s.tail && err != nil || !s.tail && !errors.Is(err, ErrTrailing) {
				t.Errorf("with a byte more: %v", err)
			}
			if s.typ.BetweenRanks() && s.typ.BodyLen() != len(want) {
				t.Errorf("BodyLen is %d, the body has %d bytes", s.typ.BodyLen(), len(want))
			}
			f := AppendFrame(nil, Header{Type: s.typ, Src: 1, Dst: 2}, s.body)
			h, err := ParseHeader(f)
			if err != nil || int(h.Length) != len(want) || len(f) != HeaderLen+len(want) || h.Payload() != 0 {
				t.Errorf("frame of %d bytes with header %+v, %v", len(f), h, err)
			}
		})
	}
}

func TestHeader(t *testing.T) {
	h := Header{Type: TypeData, Flags: FlagSync, Epoch: 0x0102, Length: 0x10010, Src: 3, Dst: Nobody, Seq: 0x0102030405060708, Ack: 9, BodySum: 0x0a0b0c0d, PayloadSum: 0x0e0f1011}
	const want = "0401020110000100" + "03000000" + "ffffffff" + "0807060504030201" + "0900000000000000" + "0d0c0b0a" + "11100f0e" + "0cbea504"
	b := h.Append(nil)
	if hex.EncodeToString(b) != want {
		t.Errorf("bytes %x, want %s", b, want)
	}
	if got, err := ParseHeader(b); err != nil || got != h || got.Payload() != 0x10000 {
		t.Errorf("parsed %+v, %v", got, err)
	}
	for bit := range 8 * HeaderLen {
		b[bit/8] ^= 1 << (bit % 8)
		if got, err := ParseHeader(b); err == nil {
			t.Errorf("with bit %d flipped: %+v", bit, got)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	for n := range HeaderLen {
		if _, err := ParseHeader(b[:n]); err != ErrShort {
			t.Errorf("prefix of %d bytes: %v", n, err)
		}
	}
}

// TestHeaderLengths checks for every type that exactly the sizes which its body and payload allow
// are taken.
func TestHeaderLengths(t *testing.T) {
	fixed := map[Type]uint32{TypeRTS: EnvelopeLen, TypeCTS: CTSLen, TypeFin: FinLen, TypeMatched: MatchedLen, TypeCredit: CreditLen, TypeAck: 0,
		TypeCancel: CancelLen, TypeCancelReply: CancelReplyLen, TypeLanded: LandedLen, TypeEcho: EchoLen, TypeBye: 0, TypeByeAck: 0, TypePong: 0, TypeMeet: MeetLen, TypeProof: ProofLen}
	ok := func(typ Type, n uint32) bool {
		h := Header{Type: typ, Length: n}
		_, err := ParseHeader(h.Append(nil))
		return err == nil
	}
	for typ, n := range fixed {
		if !ok(typ, n) || ok(typ, n+1) || n > 0 && ok(typ, n-1) {
			t.Errorf("%v: want exactly %d bytes", typ, n)
		}
	}
	for typ, n := range map[Type]uint32{TypeEager: EnvelopeLen, TypeData: DataLen} {
		if !ok(typ, n) || ok(typ, n-1) || !ok(typ, n+MaxPayload) || ok(typ, n+MaxPayload+1) {
			t.Errorf("%v: want %d bytes and at most %d of payload", typ, n, MaxPayload)
		}
	}
	if !ok(TypePing, 0) || !ok(TypePing, MaxPing) || ok(TypePing, MaxPing+1) {
		t.Errorf("Ping: want up to %d bytes", MaxPing)
	}
	sealed := func(typ Type, n uint32) bool {
		h := Header{Type: typ, Flags: FlagSealed, Length: n}
		_, err := ParseHeader(h.Append(nil))
		return err == nil
	}
	for typ, n := range fixed {
		if typ == TypeMeet || typ == TypeProof {
			if sealed(typ, n) || sealed(typ, n+SealLen) {
				t.Errorf("%v: sealed before there are keys", typ)
			}
		} else if !sealed(typ, n+SealLen) || sealed(typ, n+SealLen-1) || sealed(typ, n+SealLen+1) || sealed(typ, SealLen-1) {
			t.Errorf("%v: want exactly %d bytes when sealed", typ, n+SealLen)
		}
	}
	big := Header{Type: TypeData, Flags: FlagSealed, Length: DataLen + MaxPayload + SealLen}
	if _, err := ParseHeader(big.Append(nil)); err != nil || big.Payload() != MaxPayload || big.Rest() != MaxPayload+SealLen {
		t.Errorf("the largest sealed frame has %d bytes of payload, %d after its body: %v", big.Payload(), big.Rest(), err)
	}
	for typ := range 256 {
		typ := Type(typ)
		if ok(typ, MaxLength+1) || ok(typ, 1<<32-1) {
			t.Errorf("%v: larger than any frame, but taken", typ)
		}
		known := strings.HasPrefix(typ.String(), "Type(") == false
		any := false
		for _, n := range []uint32{0, 4, 8, 16, 24, 32, 100, MeetLen, ProofLen} {
			any = any || ok(typ, n)
		}
		if any != known {
			t.Errorf("%v: taken %v, named %v", typ, any, known)
		}
	}
}

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

func TestSequenced(t *testing.T) {
	for typ := range Type(64) {
		want := typ >= TypeEager && typ <= TypeCancelReply && typ != TypeData && typ != TypeCredit && typ != TypeAck
		if typ.Sequenced() != want {
			t.Errorf("%v: %v", typ, !want)
		}
	}
}

// TestHostile gives bodies that are well formed but must not be believed.
func TestHostile(t *testing.T) {
	two := []Cluster{{"a", 1}, {"b", 2}}
	many := make([]Cluster, MaxClusters+1)
	for i := range many {
		many[i] = Cluster{strconv.Itoa(i), 1}
	}
	join := func(change func(*Join)) []byte {
		j := Join{Version: Version, Rails: 1, Job: "j", Cluster: "b", Rank: 1, Layout: two}
		change(&j)
		return j.Append(nil)
	}
	layout := func(change func(*Layout)) []byte {
		l := Layout{Clusters: two, Libraries: []string{"", ""}, Hosts: []string{"h"}, Where: []uint32{0, 0, 0}}
		change(&l)
		return l.Append(nil)
	}
	pj, pl := parser(ParseJoin), parser(ParseLayout)
	for _, c := range []struct {
		name  string
		b     []byte
		parse func([]byte) (any, error)
		want  string // part of the error; empty: none
	}{
		{"good join", join(func(*Join) {}), pj, ""},
		{"rank outside", join(func(j *Join) { j.Rank = 2 }), pj, "rank 2"},
		{"foreign cluster", join(func(j *Join) { j.Cluster = "c" }), pj, "not in its own layout"},
		{"no clusters", join(func(j *Join) { j.Layout = nil }), pj, "0 clusters"},
		{"many clusters", join(func(j *Join) { j.Layout = many }), pj, "257 clusters"},
		{"same name", join(func(j *Join) { j.Layout = []Cluster{{"b", 2}, {"b", 2}} }), pj, "bad layout"},
		{"no name", join(func(j *Join) { j.Layout = []Cluster{{"", 2}, {"b", 2}} }), pj, "bad layout"},
		{"no ranks", join(func(j *Join) { j.Layout = []Cluster{{"a", 0}, {"b", 2}} }), pj, "bad layout"},
		{"too many ranks", join(func(j *Join) { j.Layout = []Cluster{{"a", MaxRanks}, {"b", 2}} }), pj, "bad layout"},
		{"sum overflows", join(func(j *Join) { j.Layout = []Cluster{{"a", 1<<32 - 1}, {"b", 2}} }), pj, "bad layout"},
		{"not UTF-8", join(func(j *Join) { j.Host = "\xff" }), pj, "UTF-8"},
		{"other version", join(func(j *Join) { j.Version = Version + 1; j.Layout = nil }), pj, ""},
		{"zipper outside", join(func(j *Join) { j.Zippers = []Zipper{{Ports: []Port{{2, "x"}}}} }), pj, "network 2 of 2"},
		{"zipper without ports", join(func(j *Join) { j.Zippers = []Zipper{{}} }), pj, "0 of 2 networks"},
		{"network without a name", join(func(j *Join) { j.Networks = []string{""} }), pj, "not its own"},
		{"network twice", join(func(j *Join) { j.Networks = []string{"w", "w"} }), pj, "not its own"},
		{"network like a cluster", join(func(j *Join) { j.Networks = []string{"a"} }), pj, "not its own"},
		{"many networks", join(func(j *Join) { j.Networks = make([]string, MaxNetworks+1) }), pj, "at most 64"},
		{"forwarder outside", join(func(j *Join) { j.Here = 1 }), pj, "forwarder 1 of 0"},
		{"door to its own cluster", join(func(j *Join) { j.Doors = []Port{{1, "x"}} }), pj, "own cluster"},
		{"door without an address", join(func(j *Join) { j.Doors = []Port{{0, ""}} }), pj, "without an address"},
		{"door outside", join(func(j *Join) { j.Doors = []Port{{2, "x"}} }), pj, "network 2 of 2"},
		{"many doors", join(func(j *Join) { j.Doors = []Port{{0, "x"}, {0, "y"}} }), pj, "2 doors for 1"},
		{"no rails", join(func(j *Join) { j.Rails = 0 }), pj, "no forwarder"},
		{"sealed without a key", join(func(j *Join) { j.Level = LevelSealed }), pj, "level sealed"},
		{"a key for nothing", join(func(j *Join) { j.SealKey[0] = 1 }), pj, "level plain"},
		{"good layout", layout(func(*Layout) {}), pl, ""},
		{"rank outside", layout(func(l *Layout) { l.Rank = 3 }), pl, "rank 3 of 3"},
		{"host outside", layout(func(l *Layout) { l.Where[2] = 1 }), pl, "host 1 of 1"},
		{"no hosts", layout(func(l *Layout) { l.Hosts = nil }), pl, "0 hosts"},
		{"more hosts than ranks", layout(func(l *Layout) { l.Hosts = make([]string, 4) }), pl, "4 hosts"},
		{"libraries", layout(func(l *Layout) { l.Libraries = l.Libraries[:1] }), pl, "1 libraries"},
		{"door of nobody", layout(func(l *Layout) { l.Doors = []Door{{3, 0, Port{0, "x"}}} }), pl, "rank 3 of 3"},
		{"door for no cluster", layout(func(l *Layout) { l.Doors = []Door{{0, 0, Port{2, "x"}}} }), pl, "cluster 2 of 2"},
		{"door nowhere", layout(func(l *Layout) { l.Doors = []Door{{0, 0, Port{1, ""}}} }), pl, "door"},
		{"keys of some", layout(func(l *Layout) { l.Keys = make([]SealKey, 2) }), pl, "2 keys for 3 ranks"},
		{"string too long", append([]byte{1, 0, 0, 0, 1, 0x10}, make([]byte, 4097)...), parser(ParseRefuse), "at most 4096"},
		{"name too long", join(func(j *Join) { j.Host = strings.Repeat("h", MaxName+1) }), pj, "at most 255"},
		{"neither up nor down", []byte{0, 0, 0, 0, 4, 0, 0, 0, 0, 0}, parser(ParseRailState), "neither"},
		{"neither yes nor no", []byte{0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}, parser(ParseCancelReply), "neither"},
	} {
		_, err := c.parse(c.b)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestLongStringIsCut(t *testing.T) {
	r := Refuse{RefuseLayout, "x" + strings.Repeat("é", MaxString)}
	got, err := ParseRefuse(r.Append(nil))
	if err != nil || len(got.Reason) != MaxString-1 || !strings.HasPrefix(r.Reason, got.Reason) {
		t.Errorf("%d bytes, %v", len(got.Reason), err)
	}
}

func TestClusterOf(t *testing.T) {
	l := Layout{Clusters: []Cluster{{"a", 2}, {"b", 1}, {"c", 3}}}
	for rank, want := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {2, 0}, {2, 1}, {2, 2}, {-1, -1}} {
		if c, n := l.ClusterOf(rank); c != want[0] || n != want[1] {
			t.Errorf("rank %d: %d, %d", rank, c, n)
		}
	}
}

func TestRefuseCodeNames(t *testing.T) {
	for c := RefuseMalformed; c <= RefuseShutdown; c++ {
		if s := c.String(); s == "" || strings.HasPrefix(s, "code") {
			t.Errorf("%d has no name", uint32(c))
		}
	}
	if s := RefuseCode(99).String(); s != "code 99" {
		t.Error(s)
	}
}

type sealedBody struct{}

func (sealedBody) Append(b []byte) []byte { return append(b, make([]byte, SealLen)...) }

// FuzzFrame cuts the input into frames as a reader does. Whatever is accepted must encode to the
// same bytes.
func FuzzFrame(f *testing.F) {
	for _, s := range samples {
		f.Add(AppendFrame(nil, Header{Type: s.typ, Src: 1, Dst: 2, Seq: 3, Ack: 4, Epoch: 5}, s.body))
	}
	f.Add(AppendFrame(nil, Header{Type: TypeAck, Flags: FlagSealed}, sealedBody{}))
	h := Header{Type: TypeEager, Length: EnvelopeLen + 3}
	e := Envelope{Size: 3}
	f.Add(append(e.Append(h.Append(nil)), "abc"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		Mend(b)
		for {
			h, err := ParseHeader(b)
			if err != nil {
				return
			}
			if got := h.Append(nil); !bytes.Equal(got, b[:HeaderLen]) {
				t.Fatalf("header %x encodes as %x", b[:HeaderLen], got)
			}
			if h.Payload() < 0 || h.Payload() > MaxPayload || h.Length > MaxLength {
				t.Fatalf("header %+v is out of bounds", h)
			}
			b = b[HeaderLen:]
			if len(b) < int(h.Length) {
				return
			}
			body := b[:h.Length]
			b = b[h.Length:]
			if !h.Type.BetweenRanks() && h.Flags&FlagSealed == 0 && h.Verify(body) != nil {
				t.Fatalf("%v frame that is mended does not verify", h.Type)
			}
			if h.Flags&FlagSealed != 0 {
				if h.Rest()+h.Type.BodyLen() > len(body) {
					t.Fatalf("header %+v has %d bytes after its body", h, h.Rest())
				}
				continue
			}
			var v any
			switch h.Type {
			case TypeEager, TypeRTS:
				v, err = parser(ParseEnvelope)(body)
			case TypeCTS:
				v, err = parser(ParseCTS)(body)
			case TypeData:
				v, err = parser(ParseData)(body)
			case TypeFin:
				v, err = parser(ParseFin)(body)
			case TypeMatched:
				v, err = parser(ParseMatched)(body)
			case TypeCredit:
				v, err = parser(ParseCredit)(body)
			case TypeCancel:
				v, err = parser(ParseCancel)(body)
			case TypeCancelReply:
				v, err = parser(ParseCancelReply)(body)
			case TypeChallenge:
				v, err = parser(ParseChallenge)(body)
				if err == nil && v.(*Challenge).Version != Version {
					continue
				}
			case TypeJoin:
				v, err = parser(ParseJoin)(body)
				if err == nil && v.(*Join).Version != Version {
					continue
				}
			case TypeBridge:
				v, err = parser(ParseBridge)(body)
				if err == nil && v.(*Bridge).Version != Version {
					continue
				}
			case TypeReady:
				v, err = parser(ParseReady)(body)
			case TypeMeet:
				v, err = parser(ParseMeet)(body)
			case TypeLayout:
				v, err = parser(ParseLayout)(body)
			case TypeRefuse:
				v, err = parser(ParseRefuse)(body)
			case TypeNotice:
				v, err = parser(ParseNotice)(body)
			case TypeProof:
				v, err = parser(ParseProof)(body)
			case TypeHalf:
				v, err = parser(ParseHalf)(body)
				if err == nil && v.(*Half).Version != Version {
					continue
				}
			case TypeLanded:
				v, err = parser(ParseLanded)(body)
			case TypeEcho:
				v, err = parser(ParseEcho)(body)
			case TypeCount:
				v, err = parser(ParseCount)(body)
			case TypeRailState:
				v, err = parser(ParseRailState)(body)
			case TypeAbort:
				v, err = parser(ParseAbort)(body)
			default:
				if h.Length != 0 {
					t.Fatalf("%v frame with a body", h.Type)
				}
				continue
			}
			if h.Type.BetweenRanks() && h.Type != TypeCancelReply && err != nil {
				t.Fatalf("%v: %v: a header that was accepted promises a body that parses", h.Type, err)
			}
			if err != nil {
				continue
			}
			if got := v.(Body).Append(nil); !bytes.Equal(got, body[:len(body)-h.Payload()]) {
				t.Fatalf("%v body %x encodes as %x", h.Type, body, got)
			}
		}
	})
}

// TestCounted: what is left out before a Count, comes twice, or is put in is noticed, a Count that is
// left out with the next one.
func TestCounted(t *testing.T) {
	type come struct{ number, bytes, at uint64 }
	for _, c := range []struct {
		name string
		all  []come // the last one is wrong
		want string
	}{
		{"left out", []come{{1, 0, 100}, {2, 500, 600}, {3, 700, 760}}, "40 bytes that were sent have not come"},
		{"twice", []come{{1, 50, 0}, {2, 150, 140}}, "40 bytes have come that were not sent"},
		{"the first", []come{{2, 60, 60}}, "count 2 has come in place of 1"},
		{"with what was sent", []come{{1, 0, 0}, {3, 120, 60}}, "60 bytes that were sent have not come"},
		{"repeated", []come{{1, 0, 0}, {2, 60, 60}, {2, 60, 120}}, "60 bytes have come that were not sent"},
		{"exchanged", []come{{1, 0, 0}, {3, 60, 60}}, "count 3 has come in place of 2"},
	} {
		var k Counted
		for i, x := range c.all {
			switch err := k.Take(Count{x.number, x.bytes}, x.at); {
			case i < len(c.all)-1 && err != nil:
				t.Errorf("%s: %d: %v", c.name, i, err)
			case i == len(c.all)-1 && (err == nil || err.Error() != c.want):
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
		}
	}
}

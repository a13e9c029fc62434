package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/facts"
)

// sample is one body with its bytes: the specification of the format.
type sample struct {
	name  string
	typ   Type
	body  Body
	hex   string
	parse func([]byte) (any, error)
	// tail says that a payload may follow, so more bytes are no error.
	tail bool
}

func parser[T any](f func([]byte) (T, error)) func([]byte) (any, error) {
	return func(b []byte) (any, error) {
		v, err := f(b)
		return &v, err
	}
}

// layoutParser parses Layouts of a version.
func layoutParser(version uint32) func([]byte) (any, error) {
	return parser(func(b []byte) (Layout, error) { return ParseLayout(b, version) })
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
		"00000000ffffffff" + "feffffff" + "01000000" + "0807060504030201" + "0900000000000000", parser(ParseEnvelope),
		true},
	{"cts", TypeCTS, &CTS{1, 2, 0x1000}, "0100000000000000" + "0200000000000000" + "0010000000000000", parser(ParseCTS), false},
	{"data", TypeData, &Data{3, 0x10000}, "0300000000000000" + "0000010000000000", parser(ParseData), true},
	{"fin", TypeFin, &Fin{4}, "0400000000000000", parser(ParseFin), false},
	{"matched", TypeMatched, &Matched{5}, "0500000000000000", parser(ParseMatched), false},
	{"credit", TypeCredit, &Credit{6, 7}, "0600000000000000" + "0700000000000000", parser(ParseCredit), false},
	{"cancel", TypeCancel, &Cancel{8}, "0800000000000000", parser(ParseCancel), false},
	{"cancel reply, yes", TypeCancelReply, &CancelReply{9, true}, "0900000000000000" + "0100000000000000", parser(ParseCancelReply), false},
	{"cancel reply, no", TypeCancelReply, &CancelReply{9, false}, "0900000000000000" + "0000000000000000", parser(ParseCancelReply), false},
	{"challenge", TypeChallenge, &Challenge{Version, Oldest, ramp[[32]byte](0), true, ramp[[32]byte](0), ramp[[32]byte](0)}, "0d000000" + "0c000000" + ramp32 + "01000000" + ramp32 + ramp32, parser(ParseChallenge), false},
	{"join", TypeJoin, &Join{Version: Version, TimeoutMS: 60000, Job: "j1", Cluster: "b", Rank: 1, TagUB: 0x7fffffff,
		Library: "MPICH", Facts: 0x01233321, Protocol: "classic", Settings: "A=1", Host: "h2", Origin: "u",
		Level: LevelSealed, Patience: 30000, Rails: 2, Instance: 0x0102030405060708,
		Layout: []Cluster{{"a", 1}, {"b", 2}}, Networks: []string{"w"},
		Zippers: []Zipper{{Ports: []Port{{0, "x"}, {1, "yz"}}, HostKey: ramp[[32]byte](0)},
			{Ports: []Port{{2, ""}}}}, Here: 1, Doors: []Port{{0, "d"}}, Inside: "i", SealKey: ramp[[32]byte](0), Proof: ramp[[16]byte](0), LinkKey: ramp[[32]byte](0), Ticket: "t", Nonce: ramp[[32]byte](0), PublicKey: ramp[[32]byte](0), Guest: ramp[[32]byte](0), Signature: ramp[[64]byte](0), Pass: ramp[[16]byte](0)},
		"0d000000" + "60ea0000" + "0200" + "6a31" + "0100" + "62" + "01000000" + "ffffff7f" + "0500" + "4d50494348" +
			"21332301" + "0700" + "636c6173736963" + "0300" + "413d31" + "0200" + "6832" + "0100" + "75" +
			"0200" + "30750000" + "0200" + "0807060504030201" +
			"0200" + "0100" + "61" + "01000000" + "0100" + "62" + "02000000" + "0100" + "0100" + "77" + "0200" +
			"0200" + "0000" + "0100" + "78" + "0100" + "0200" + "797a" + ramp32 + "0100" + "0200" + "0000" +
			zero32 + "0100" + "0100" + "0000" + "0100" + "64" + "0100" + "69" + ramp32 + ramp32[:32] + ramp32 +
			"0100" + "74" + ramp32 + ramp32 + ramp32 + ramp64 + ramp32[:32], parser(ParseJoin), false},
	{"join before facts", TypeJoin, &Join{Version: Oldest, TimeoutMS: 60000, Job: "j1", Cluster: "b", Rank: 1, TagUB: 0x7fffffff,
		Library: "MPICH", Model: "lp64", Protocol: "classic", Settings: "A=1", Host: "h2", Origin: "u",
		Level: LevelSealed, Patience: 30000, Rails: 2, Instance: 0x0102030405060708,
		Layout: []Cluster{{"a", 1}, {"b", 2}}, Networks: []string{"w"},
		Zippers: []Zipper{{Ports: []Port{{0, "x"}, {1, "yz"}}, HostKey: ramp[[32]byte](0)},
			{Ports: []Port{{2, ""}}}}, Here: 1, Doors: []Port{{0, "d"}}, Inside: "i", SealKey: ramp[[32]byte](0), Proof: ramp[[16]byte](0), LinkKey: ramp[[32]byte](0), Ticket: "t", Nonce: ramp[[32]byte](0), PublicKey: ramp[[32]byte](0), Guest: ramp[[32]byte](0), Signature: ramp[[64]byte](0), Pass: ramp[[16]byte](0)},
		"0c000000" + "60ea0000" + "0200" + "6a31" + "0100" + "62" + "01000000" + "ffffff7f" + "0500" + "4d50494348" +
			"0400" + "6c703634" + "0700" + "636c6173736963" + "0300" + "413d31" + "0200" + "6832" + "0100" + "75" +
			"0200" + "30750000" + "0200" + "0807060504030201" +
			"0200" + "0100" + "61" + "01000000" + "0100" + "62" + "02000000" + "0100" + "0100" + "77" + "0200" +
			"0200" + "0000" + "0100" + "78" + "0100" + "0200" + "797a" + ramp32 + "0100" + "0200" + "0000" +
			zero32 + "0100" + "0100" + "0000" + "0100" + "64" + "0100" + "69" + ramp32 + ramp32[:32] + ramp32 +
			"0100" + "74" + ramp32 + ramp32 + ramp32 + ramp64 + ramp32[:32], parser(ParseJoin), false},
	{"bridge", TypeBridge, &Bridge{Version: Version, From: 1, To: 0, Number: 3, Nonce: ramp[[32]byte](0),
		Fresh: ramp[[32]byte](0), OwnKey: ramp[[32]byte](0), LinkKey: ramp[[32]byte](0), HostKey: ramp[[32]byte](0),
		Proof: ramp[[64]byte](0), Pass: ramp[[16]byte](0), Join: Join{Version: Version, Rails: 1, Job: "j",
			Cluster: "b",
			Layout:  []Cluster{{"b", 1}}, Zippers: []Zipper{{Ports: []Port{{0, "x"}}}, {Ports: []Port{{0, "y"}}}}, Here: 1,
			PublicKey: ramp[[32]byte](0), Signature: ramp[[64]byte](0)}},
		"0d000000" + "0100" + "0000" + "0300" + ramp32 + ramp32 + ramp32 + ramp32 + ramp32 + ramp64 + ramp32[:32] +
			"0d000000" + "00000000" + "0100" + "6a" + "0100" + "62" + "00000000" + "00000000" + "0000" + "00000000" +
			"0000" + "0000" + "0000" + "0000" + "0000" + "00000000" + "0100" + "0000000000000000" +
			"0100" + "0100" + "62" + "01000000" + "0000" + "0200" + "0100" + "0000" + "0100" + "78" + zero32 + "0100" +
			"0000" + "0100" + "79" + zero32 + "0100" + "0000" + "0000" + strings.Repeat("00", 80) + "0000" +
			zero32 + ramp32 + zero32 + ramp64 + zero32[:32], parser(ParseBridge), false},
	{"proof", TypeProof, &Proof{ramp[[64]byte](0)}, ramp64, parser(ParseProof), false},
	{"joint proof", TypeJointProof, &JointProof{ramp[[64]byte](0), 3, [][32]byte{ramp[[32]byte](0), {}}},
		ramp64 + "03000000" + ramp32 + zero32, parser(ParseJointProof), false},
	{"joint proof for one", TypeJointProof, &JointProof{Signature: ramp[[64]byte](0)}, ramp64 + "00000000",
		parser(ParseJointProof), false},
	{"half", TypeHalf, &Half{Version: Version, TimeoutMS: 60000, RanMS: 1000, State: HalfSuspended, Code: -2, Job: "j1", Cluster: "b", Reason: "né", Ticket: "t", PublicKey: ramp[[32]byte](0), Signature: ramp[[64]byte](0)},
		"0d000000" + "60ea0000" + "e8030000" + "0200" + "feffffff" + "0200" + "6a31" + "0100" + "62" + "0300" +
			"6ec3a9" + "0100" + "74" + ramp32 + ramp64, parser(ParseHalf), false},
	{"ready", TypeReady, &Ready{2}, "02000000", parser(ParseReady), false},
	{"meet", TypeMeet, &Meet{1, 2, 0x0102030405060708, ramp[[32]byte](0), ramp[[64]byte](0)}, "01000000" + "02000000" +
		"0807060504030201" + ramp32 + ramp32 +
		"202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f", parser(ParseMeet), false},
	{"layout before facts", TypeLayout, &Layout{Version: Oldest, Rank: 2, TagUB: 0xfffffff, Clusters: []Cluster{{"a", 1}, {"b", 2}},
		Libraries: []string{"X", ""}, Namesake: true,
		Doors: []Door{{2, 0x0102030405060708, Port{0, "d"}}}},
		"02000000" + "ffffff0f" + "0200" + "0100" + "61" + "01000000" + "0100" + "62" + "02000000" + "0200" + "0100" +
			"58" + "0000" +
			"01000000" + "01000000" + "02000000" + "0807060504030201" + "0000" + "0100" + "64" +
			"00000000", layoutParser(Oldest), false},
	{"layout of a sealed job", TypeLayout, &Layout{Version: Oldest, Rank: 0, TagUB: 1, Clusters: []Cluster{{"a", 1}}, Libraries: []string{""},
		Keys: []SealKey{{0x0102030405060708, ramp[[32]byte](0), ramp[[16]byte](0)}}},
		"00000000" + "01000000" + "0100" + "0100" + "61" + "01000000" + "0100" + "0000" +
			"00000000" + "00000000" +
			"01000000" + "0807060504030201" + ramp32 + ramp32[:32], layoutParser(Oldest), false},
	{"layout", TypeLayout, &Layout{Version: Version, Rank: 1, TagUB: 1, Clusters: []Cluster{{"a", 1}, {"b", 2}},
		Libraries: []string{"", ""}, Facts: []facts.Word{0x14233321, 0x02233321}},
		"01000000" + "01000000" + "0200" + "0100" + "61" + "01000000" + "0100" + "62" + "02000000" + "0200" + "0000" +
			"0000" + "21332314" + "21332302" + "00000000" + "00000000" + "00000000", layoutParser(Version), false},
	{"refuse", TypeRefuse, &Refuse{RefuseSecret, "né"}, "03000000" + "0300" + "6ec3a9", parser(ParseRefuse), false},
	{"notice", TypeNotice, &Notice{"né"}, "0300" + "6ec3a9", parser(ParseNotice), false},
	{"count", TypeCount, &Count{3, 0x0102030405060708}, "0300000000000000" + "0807060504030201", parser(ParseCount), false},
	{"landed", TypeLanded, &Landed{6}, "0600000000000000", parser(ParseLanded), false},
	{"echo", TypeEcho, &Echo{7}, "0700000000000000", parser(ParseEcho), false},
	{"rail state", TypeRailState, &RailState{7, 3, false, false, false, "why"}, "07000000" + "03000000" + "00000000" + "0300" + "776879", parser(ParseRailState), false},
	{"rail state, up", TypeRailState, &RailState{7, 4, true, false, false, ""}, "07000000" + "04000000" + "01000000" + "0000", parser(ParseRailState), false},
	{"rail state, gone", TypeRailState, &RailState{7, 5, false, true, false, ""}, "07000000" + "05000000" + "02000000" + "0000", parser(ParseRailState), false},
	{"rail state, cut", TypeRailState, &RailState{7, 6, false, false, true, "why"}, "07000000" + "06000000" + "03000000" + "0300" + "776879", parser(ParseRailState), false},
	{"lost", TypeLost, &Lost{7, 3, 2, "why"}, "07000000" + "0300" + "02000000" + "0300" + "776879", parser(ParseLost), false},
	{"ask", TypeAsk, &Ask{3}, "03000000", parser(ParseAsk), false},
	{"moved", TypeMoved, &Moved{3, 0x0102030405060708}, "0300000000000000" + "0807060504030201", parser(ParseMoved), false},
	{"way", TypeWay, &Way{3, 0x0102030405060708, "10.1.0.9:7"}, "03000000" + "0807060504030201" + "0a00" + "31302e312e302e393a37", parser(ParseWay), false},
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
	h := Header{Type: TypeData, Flags: FlagSync, Epoch: 0x0102, Length: 0x10010, Src: 3, Dst: Nobody,
		Seq: 0x0102030405060708, Ack: 9, BodySum: 0x0a0b0c0d, PayloadSum: 0x0e0f1011}
	const want = "0401020110000100" + "03000000" + "ffffffff" + "0807060504030201" + "0900000000000000" + "0d0c0b0a" +
		"11100f0e" + "0cbea504"
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
// are accepted.
func TestHeaderLengths(t *testing.T) {
	fixed := map[Type]uint32{TypeRTS: EnvelopeLen, TypeCTS: CTSLen, TypeFin: FinLen, TypeMatched: MatchedLen,
		TypeCredit: CreditLen, TypeAck: 0,
		TypeCancel: CancelLen, TypeCancelReply: CancelReplyLen, TypeLanded: LandedLen, TypeEcho: EchoLen, TypeBye: 0,
		TypeByeAck: 0, TypePong: 0, TypeMeet: MeetLen, TypeProof: ProofLen, TypeOffer: 0, TypeAsk: AskLen, TypeMoved: MovedLen}
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
		} else if !sealed(typ, n+SealLen) || sealed(typ, n+SealLen-1) || sealed(typ, n+SealLen+1) ||
			sealed(typ, SealLen-1) {
			t.Errorf("%v: want exactly %d bytes when sealed", typ, n+SealLen)
		}
	}
	big := Header{Type: TypeData, Flags: FlagSealed, Length: DataLen + MaxPayload + SealLen}
	if _, err := ParseHeader(big.Append(nil)); err != nil || big.Payload() != MaxPayload ||
		big.Rest() != MaxPayload+SealLen {
		t.Errorf("the largest sealed frame has %d bytes of payload, %d after its body: %v", big.Payload(), big.Rest(),
			err)
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

func TestSequenced(t *testing.T) {
	for typ := range Type(64) {
		want := typ >= TypeEager && typ <= TypeCancelReply && typ != TypeData && typ != TypeCredit && typ != TypeAck
		if typ.Sequenced() != want {
			t.Errorf("%v: %v", typ, !want)
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
	for c := RefuseMalformed; c <= RefuseFull; c++ {
		if s := c.String(); s == "" || strings.HasPrefix(s, "code") {
			t.Errorf("%d has no name", uint32(c))
		}
	}
	if s := RefuseCode(99).String(); s != "code 99" {
		t.Error(s)
	}
}

// TestOriginNamesTheArchitecture checks that the architecture is a word of an origin, and that the
// rest stays as it was.
func TestOriginNamesTheArchitecture(t *testing.T) {
	for _, c := range []struct{ origin, rest, arch string }{
		{WithArch("user=u slurm=7", "aarch64"), "user=u slurm=7", "aarch64"},
		{"user=u", "user=u", ""},
		{"", "", ""},
	} {
		if rest, arch := CutArch(c.origin); rest != c.rest || arch != c.arch {
			t.Errorf("%q: %q, %q", c.origin, rest, arch)
		}
	}
}

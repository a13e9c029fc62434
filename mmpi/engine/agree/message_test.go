package agree

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

func TestMessage(t *testing.T) {
	m := Message{Kind: Decision, Number: 2, Context: 0x0102030405060708,
		Ballot: Ballot{Shrink: true, Flag: 3, Done: 1, Fresh: 9, Lost: Set{4}, Acked: Set{0, 0, 0, 5}}}
	want := "0301" + "02000000" + "03000000" + "01000000" + "0807060504030201" + "0900000000000000" +
		"04" + strings.Repeat("00", 31) + strings.Repeat("00", 24) + "0500000000000000"
	b := m.Append([]byte("x"))[1:]
	if hex.EncodeToString(b) != want || len(b) != MessageLen {
		t.Errorf("%x, want %s", b, want)
	}
	if got, err := Parse(b); err != nil || got != m {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range b {
		if _, err := Parse(b[:n]); err == nil {
			t.Errorf("%d bytes are a message", n)
		}
	}
	for _, bad := range [][]byte{append(bytes.Clone(b), 0), slices.Concat([]byte{0}, b[1:]), slices.Concat([]byte{4}, b[1:]),
		slices.Concat([]byte{1, 2}, b[2:])} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%x is a message", bad)
		}
	}
}

func TestSet(t *testing.T) {
	var a, b Set
	for _, c := range []int{0, 63, 64, 255} {
		a.Add(c)
	}
	b.Add(64)
	b.Add(7)
	if got := a.Clusters(); !slices.Equal(got, []int{0, 63, 64, 255}) {
		t.Error(got)
	}
	for name, x := range map[string]struct {
		got  Set
		want []int
	}{"with": {a.With(b), []int{0, 7, 63, 64, 255}}, "without": {a.Without(b), []int{0, 63, 255}}, "and": {a.And(b), []int{64}}} {
		if !slices.Equal(x.got.Clusters(), x.want) {
			t.Errorf("%s: %v", name, x.got.Clusters())
		}
	}
	if !a.Has(255) || a.Has(254) || MaxClusters != wire.MaxClusters {
		t.Error("the set is too small, or has another cluster")
	}
}

// TestForeignMessagesAreRejected checks that messages that no process sends are errors.
func TestForeignMessagesAreRejected(t *testing.T) {
	m := New(Group{Me: 1, Mine: []int{1, 2}, Leaders: []Leader{{0, 0}, {1, 1}, {2, 5}}}, 7, Set{}, nil)
	for what, x := range map[string]struct {
		from int
		Message
	}{
		"a vote of a stranger":           {9, Message{Kind: Vote}},
		"a question of a member":         {2, Message{Kind: Ask}},
		"a decision of a stranger":       {9, Message{Kind: Decision}},
		"an agreement far in the future": {0, Message{Kind: Ask, Number: maxAhead + 1}},
	} {
		if err := m.Receive(x.from, x.Message); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if err := m.Receive(5, Message{Kind: Vote, Ballot: Ballot{Flag: 1}}); err != nil {
		t.Error(err)
	}
}

// FuzzReceive gives a leader any messages from any ranks.
func FuzzReceive(f *testing.F) {
	v := Message{Kind: Vote, Context: 7, Ballot: Ballot{Flag: 1}}
	d := Message{Kind: Decision, Context: 7}
	f.Add(v.Append([]byte{5}))
	f.Add(d.Append(v.Append([]byte{2})))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := New(Group{Me: 1, Mine: []int{1, 2}, Leaders: []Leader{{0, 0}, {1, 1}, {2, 5}}}, 7, Set{}, func() uint64 { return 1 })
		m.Start(3, false, Set{})
		for len(b) > MessageLen {
			x, err := Parse(b[1 : 1+MessageLen])
			if err == nil {
				if got := x.Append(nil); !bytes.Equal(got, b[1:1+MessageLen]) {
					t.Fatalf("%x is encoded as %x", b[1:1+MessageLen], got)
				}
				_ = m.Receive(int(b[0]), x)
			}
			b = b[1+MessageLen:]
		}
		m.Lose(0)
		for _, e := range first(m.Take()) {
			if e.To != 0 && e.To != 2 && e.To != 5 {
				t.Fatalf("a message to rank %d", e.To)
			}
		}
	})
}

func first(out []Envelope, _ []Outcome) []Envelope { return out }

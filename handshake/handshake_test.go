package handshake

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/facts"
	"github.com/leidenzipper/zipper/internal/wire"
)

// These are the facts of processes on x86-64 and aarch64.
const (
	x86 facts.Word = 0x01423321
	arm facts.Word = 0x02423321
)

var layout = []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 2}}

func member(cluster string, rank int) Identity {
	return Identity{Job: "j", Secret: "s", Cluster: cluster, Rank: rank, Layout: layout, TagUB: 1000 + rank,
		Library: "lib " + cluster, Facts: x86, Host: "host-" + cluster, TimeoutMS: 1000}
}

// deliver passes a machine's frames to a function until there is another event, which it returns.
func deliver(t testing.TB, next func() (Event, bool), to func(wire.Header, []byte)) (Event, bool) {
	t.Helper()
	for {
		e, ok := next()
		if !ok || e.Kind != Send {
			return e, ok
		}
		for b := e.Frame; len(b) > 0; {
			h, err := wire.ParseHeader(b)
			end := wire.HeaderLen + int(h.Length)
			if err != nil || len(b) < end {
				t.Fatalf("bad frames %x: %v", e.Frame, err)
			}
			to(h, b[wire.HeaderLen:end:end])
			b = b[end:]
		}
	}
}

// joinUntilDecision runs the join up to the forwarder's decision.
func joinUntilDecision(t testing.TB, id Identity, a *Acceptor) (*Joiner, Event) {
	t.Helper()
	j, err := NewJoiner(id, nonce(4))
	if err != nil {
		t.Fatal(err)
	}
	deliver(t, a.NextEvent, j.HandleMessage)
	deliver(t, j.NextEvent, a.HandleMessage)
	e, _ := deliver(t, a.NextEvent, j.HandleMessage)
	return j, e
}

func acceptor(seed byte, secret string) *Acceptor {
	return NewAcceptor([wire.NonceLen]byte{seed}, &Terms{Secret: secret, Keys: forwarderKeys(seed), Strict: true})
}

// end returns the joiner's last event.
func end(t *testing.T, j *Joiner) *Refused {
	t.Helper()
	e, ok := j.NextEvent()
	if !ok || e.Kind != Ended {
		t.Fatalf("joiner's event is %+v", e)
	}
	return e.Err
}

func TestCompleteJobGetsItsLayout(t *testing.T) {
	var g *Gather
	machines := map[int]*Acceptor{}
	joiners := map[int]*Joiner{}
	for i, id := range []Identity{member("b", 1), member("a", 0), member("b", 0)} {
		a := acceptor(byte(i), "s")
		j, e := joinUntilDecision(t, id, a)
		if e.Kind != Verified || e.Join.Cluster != id.Cluster || e.Join.TimeoutMS != 1000 || e.Join.Host != id.Host {
			t.Fatalf("event %+v", e)
		}
		if g == nil {
			g = NewGather(e.Join)
		}
		if g.Complete() {
			t.Fatal("complete too early")
		}
		v, refused := g.Add(e.Join)
		if refused != nil {
			t.Fatal(refused)
		}
		machines[v], joiners[v] = a, j
	}
	if !g.Complete() || g.Missing() != "" || g.Ranks() != 3 || g.Joined() != 3 {
		t.Fatalf("not complete, missing %q", g.Missing())
	}
	l, refused := g.Layout()
	if refused != nil {
		t.Fatal(refused)
	}
	for v, a := range machines {
		l.Rank = uint32(v)
		a.Admit(&l, nil)
		deliver(t, a.NextEvent, joiners[v].HandleMessage)
		e, ok := joiners[v].NextEvent()
		if !ok || e.Kind != Joined || int(e.Layout.Rank) != v || e.Layout.TagUB != 1000 ||
			g.Host(v) != []string{"host-a", "host-b", "host-b"}[v] ||
			e.Layout.Libraries[1] != "lib b" {
			t.Errorf("rank %d: %+v", v, e)
		}
	}
}

// TestAskedJoinerGivesItsAddress checks that a joiner that is asked for its address for connections
// answers before it joins, and that a joiner that is not asked cannot give one.
func TestAskedJoinerGivesItsAddress(t *testing.T) {
	for _, nat := range []bool{true, false} {
		a := NewAcceptor([wire.NonceLen]byte{1}, &Terms{Secret: "s", NAT: nat, Keys: forwarderKeys(1)})
		j, err := NewJoiner(member("a", 0), nonce(4))
		if err != nil {
			t.Fatal(err)
		}
		deliver(t, a.NextEvent, j.HandleMessage)
		want := ""
		if nat {
			if e, ok := deliver(t, j.NextEvent, a.HandleMessage); !ok || e.Kind != Asked {
				t.Fatalf("%+v instead of the question", e)
			}
			want = "10.0.0.1:5000"
		}
		j.Inside("10.0.0.1:5000")
		j.Inside("10.0.0.1:6000") // too late
		deliver(t, j.NextEvent, a.HandleMessage)
		if e, ok := deliver(t, a.NextEvent, j.HandleMessage); !ok || e.Kind != Verified || e.Join.Inside != want {
			t.Errorf("asked %v: %+v", nat, e)
		}
	}
}

func TestRefusalsNameTheReason(t *testing.T) {
	set := func(change func(*Identity)) Identity {
		id := member("b", 1)
		change(&id)
		return id
	}
	for _, c := range []struct {
		name  string
		id    Identity
		owner string // the forwarder's own secret
		code  wire.RefuseCode
		want  string
	}{
		{"wrong secret", set(func(i *Identity) { i.Secret = "x" }), "", wire.RefuseSecret, "another secret"},
		{"wrong secret for the forwarder", set(func(i *Identity) { i.Secret = "x" }), "s", wire.RefuseSecret,
			"not the one this forwarder was started with"},
		{"other sizes", set(func(i *Identity) {
			i.Layout = []wire.Cluster{{Name: "a", Size: 2},
				{Name: "b", Size: 2}}
		}), "", wire.RefuseLayout, "a=2,b=2 here, but a=1,b=2"},
		{"other order", set(func(i *Identity) {
			i.Layout = []wire.Cluster{{Name: "b", Size: 2},
				{Name: "a", Size: 1}}
		}), "", wire.RefuseLayout, "b=2,a=1"},
		{"one cluster less", set(func(i *Identity) { i.Layout = layout[1:] }), "", wire.RefuseLayout, "b=2 here"},
		{"twice", member("a", 0), "", wire.RefuseTaken, `rank 0 of cluster "a"`},
		{"other zippers", set(func(i *Identity) { i.Zippers = []wire.Zipper{{Ports: []wire.Port{{Address: "x"}}}} }),
			"", wire.RefuseLayout, "other forwarders"},
		{"collective settings", set(func(i *Identity) { i.Settings = "X=2" }), "", wire.RefuseSettings,
			`"X=2" in cluster "b", "" in "a"`},
		{"loss of a cluster", set(func(i *Identity) { i.Settings = "ZIPPER_ON_LOSS=continue" }), "", wire.RefuseSettings,
			`"ZIPPER_ON_LOSS=continue" in cluster "b", "" in "a": they must be equal in all clusters; give all halves the same --on-loss`},
		{"protocol", set(func(i *Identity) { i.Protocol = "classic" }), "", wire.RefuseSettings,
			`protocol "classic" in cluster "b", the usual protocol in "a"`},
		{"data model", set(func(i *Identity) { i.Facts ^= 3 }), "", wire.RefuseModel, `the byte orders differ`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, first := joinUntilDecision(t, member("a", 0), acceptor(1, ""))
			g := NewGather(first.Join)
			g.Add(first.Join)
			a := acceptor(2, c.owner)
			j, e := joinUntilDecision(t, c.id, a)
			var here *Refused
			if e.Kind == Verified {
				_, here = g.Add(e.Join)
				if here == nil {
					t.Fatal("let in")
				}
				a.Refuse(here.Code, here.Reason)
				e, _ = deliver(t, a.NextEvent, j.HandleMessage)
			}
			here = e.Err
			there := end(t, j)
			if here.Code != c.code || here.Remote || !strings.Contains(here.Reason, c.want) {
				t.Errorf("forwarder: %+v", here)
			}
			if there.Code != c.code || !there.Remote || there.Reason != here.Reason {
				t.Errorf("joiner: %+v", there)
			}
			if g.Joined() != 1 || g.Missing() != "cluster b (2 ranks)" {
				t.Errorf("the refused rank left something behind: missing %q", g.Missing())
			}
		})
	}
}

// TestEndsSpeakTheNewestCommonVersion checks that both ends speak the newest version that both
// know, or refuse each other.
func TestEndsSpeakTheNewestCommonVersion(t *testing.T) {
	// A newer forwarder that also speaks our version.
	j, _ := NewJoiner(member("a", 0), nonce(4))
	a := acceptor(0, "")
	deliver(t, a.NextEvent, func(h wire.Header, body []byte) {
		body[0] = wire.Version + 1
		j.HandleMessage(h, append(body, "something new"...))
	})
	deliver(t, j.NextEvent, a.HandleMessage)
	if e, _ := a.NextEvent(); e.Kind != Verified || e.Join.Version != wire.Version {
		t.Errorf("newer forwarder: %+v", e)
	}
	// A newer forwarder that does not.
	j, _ = NewJoiner(member("a", 0), nonce(4))
	a = acceptor(0, "")
	deliver(t, a.NextEvent, func(h wire.Header, body []byte) {
		body[0], body[4] = wire.Version+2, wire.Version+1
		j.HandleMessage(h, append(body, "something new"...))
	})
	deliver(t, j.NextEvent, a.HandleMessage)
	e, _ := a.NextEvent()
	if e.Kind != Ended || !e.Err.Remote || e.Err.Code != wire.RefuseVersion ||
		!strings.Contains(e.Err.Reason, fmt.Sprintf("versions %d to %d there, %s here", wire.Version+1, wire.Version+2,
			wire.Versions(wire.Oldest, wire.Version))) {
		t.Errorf("forwarder: %+v", e)
	}
	// A newer rank.
	j, _ = NewJoiner(member("a", 0), nonce(4))
	a = acceptor(0, "")
	deliver(t, a.NextEvent, j.HandleMessage)
	deliver(t, j.NextEvent, func(h wire.Header, body []byte) {
		body[0] = wire.Version + 1
		a.HandleMessage(h, append(body, "something new"...))
	})
	e, _ = deliver(t, a.NextEvent, j.HandleMessage)
	if e.Kind != Ended || e.Err.Remote || e.Err.Code != wire.RefuseVersion {
		t.Errorf("forwarder: %+v", e)
	}
	if r := end(t, j); r.Code != wire.RefuseVersion || !r.Remote || !strings.Contains(r.Reason, "COMPATIBILITY.md") {
		t.Errorf("joiner: %+v", r)
	}
}

// TestReplayedJoinIsRefused checks that an overheard Join is refused on another link, and that a
// changed one is.
func TestReplayedJoinIsRefused(t *testing.T) {
	var overheard []byte
	a := acceptor(1, "")
	j, _ := NewJoiner(member("a", 0), nonce(4))
	deliver(t, a.NextEvent, j.HandleMessage)
	deliver(t, j.NextEvent, func(_ wire.Header, body []byte) { overheard = append([]byte(nil), body...) })
	for name, try := range map[string]struct {
		nonce byte
		flip  int
		ok    bool
	}{"as it was": {1, -1, true}, "other nonce": {2, -1, false}, "time-out changed": {1, 4, false},
		"pass changed": {1, len(overheard) - 1, false}, "signature changed": {1, len(overheard) - 17, false},
		"guest key changed": {1, len(overheard) - 112, false}, "key changed": {1, len(overheard) - 144, false}} {
		a := acceptor(try.nonce, "")
		a.NextEvent()
		b := append([]byte(nil), overheard...)
		if try.flip >= 0 {
			b[try.flip] ^= 1
		}
		a.HandleMessage(wire.Header{Type: wire.TypeJoin, Length: uint32(len(b))}, b)
		e, _ := deliver(t, a.NextEvent, func(wire.Header, []byte) {})
		if try.ok != (e.Kind == Verified) || !try.ok && e.Err.Code != wire.RefuseSecret {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestFrameOutOfTurnIsRefused(t *testing.T) {
	for typ := range wire.Type(64) {
		switch typ {
		case wire.TypeJoin, wire.TypeRefuse:
			continue
		}
		a := acceptor(0, "")
		a.NextEvent()
		a.HandleMessage(wire.Header{Type: typ}, nil)
		if e, _ := deliver(t, a.NextEvent, func(wire.Header, []byte) {}); e.Kind != Ended ||
			e.Err.Code != wire.RefuseMalformed {
			t.Errorf("acceptor takes %v: %+v", typ, e)
		}
		a.HandleMessage(wire.Header{Type: typ}, nil)
		if e, ok := a.NextEvent(); ok {
			t.Errorf("acceptor goes on after its end: %+v", e)
		}
	}
	for typ := range wire.Type(64) {
		switch typ {
		case wire.TypeChallenge, wire.TypePing:
			continue
		}
		j, _ := NewJoiner(member("a", 0), nonce(4))
		j.HandleMessage(wire.Header{Type: typ}, nil)
		if e, _ := deliver(t, j.NextEvent, func(wire.Header, []byte) {}); e.Kind != Ended ||
			e.Err.Code != wire.RefuseMalformed {
			t.Errorf("joiner takes %v: %+v", typ, e)
		}
	}
}

// TestLayoutIsChecked checks that a wrong layout is refused, because a rank computes with it.
func TestLayoutIsChecked(t *testing.T) {
	for name, change := range map[string]func(*wire.Layout){
		"clusters": func(l *wire.Layout) { l.Clusters = layout[:1]; l.Libraries = l.Libraries[:1] },
		"sizes": func(l *wire.Layout) {
			l.Clusters = []wire.Cluster{{Name: "a", Size: 2},
				{Name: "b", Size: 1}}
		},
		"somebody":     func(l *wire.Layout) { l.Rank = 1 },
		"tags too big": func(l *wire.Layout) { l.TagUB = 5000 },
	} {
		j, _ := NewJoiner(member("a", 0), nonce(4))
		a := acceptor(0, "")
		deliver(t, a.NextEvent, j.HandleMessage)
		deliver(t, j.NextEvent, a.HandleMessage)
		deliver(t, a.NextEvent, j.HandleMessage)
		l := wire.Layout{Version: wire.Version, TagUB: 10, Clusters: layout, Libraries: []string{"", ""}, Facts: []facts.Word{0, 0}}
		change(&l)
		a.Admit(&l, nil)
		deliver(t, a.NextEvent, j.HandleMessage)
		if e, _ := deliver(t, j.NextEvent, a.HandleMessage); e.Kind != Ended || e.Err.Code != wire.RefuseMalformed {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestPingIsAnsweredWhileWaiting(t *testing.T) {
	a := acceptor(0, "")
	j, _ := joinUntilDecision(t, member("a", 0), a)
	j.HandleMessage(wire.Header{Type: wire.TypePing}, nil)
	sent := 0
	deliver(t, j.NextEvent, func(h wire.Header, body []byte) {
		sent++
		if h.Type != wire.TypePong {
			t.Errorf("answer is %v", h.Type)
		}
		a.HandleMessage(h, body)
	})
	if e, ok := a.NextEvent(); ok || sent != 1 {
		t.Errorf("%d answers, event %+v", sent, e)
	}
}

func TestMissingRanksAreNamed(t *testing.T) {
	big := []wire.Cluster{{Name: "a", Size: 6}, {Name: "b", Size: 1}, {Name: "c", Size: 2}}
	join := func(cluster string, rank uint32) *wire.Join {
		return &wire.Join{Job: "j", Cluster: cluster, Rank: rank, Layout: big}
	}
	g := NewGather(join("a", 0))
	step := func(j *wire.Join, want string) int {
		t.Helper()
		v, r := g.Add(j)
		if r != nil {
			t.Fatal(r)
		}
		if m := g.Missing(); m != want {
			t.Errorf("missing %q, want %q", m, want)
		}
		return v
	}
	step(join("a", 0), "cluster b (1 rank), cluster c (2 ranks), ranks 1-5 of cluster a")
	step(join("a", 3), "cluster b (1 rank), cluster c (2 ranks), ranks 1-2,4-5 of cluster a")
	v := step(join("c", 1), "cluster b (1 rank), ranks 1-2,4-5 of cluster a, rank 0 of cluster c")
	if v != 8 {
		t.Errorf("virtual rank %d", v)
	}
	g.Remove(v)
	g.Remove(v)
	if g.Joined() != 2 {
		t.Errorf("%d joined", g.Joined())
	}
	step(join("c", 1), "cluster b (1 rank), ranks 1-2,4-5 of cluster a, rank 0 of cluster c")
}

// TestHugeLayoutTakesNoMemory checks that a stranger's layout takes memory only for the ranks that
// join, and that a layout too long for the answer is refused.
func TestHugeLayoutTakesNoMemory(t *testing.T) {
	const many = 1 << 17
	huge := []wire.Cluster{{Name: "a", Size: many}}
	j := &wire.Join{Job: "j", Cluster: "a", Layout: huge}
	if n := testing.AllocsPerRun(10, func() { NewGather(j).Add(j) }); n > 20 {
		t.Errorf("%v allocations for the first of many", n)
	}
	g := NewGather(j)
	for r := 0; r < many; r += 2 {
		j.Rank = uint32(r)
		g.Add(j)
	}
	if m := g.Missing(); len(m) > 200 || !strings.Contains(m, "ranks 1,3,5,") ||
		!strings.Contains(m, "more of cluster a") {
		t.Errorf("missing %q", m)
	}
	few := []wire.Cluster{{Name: "a", Size: 5000}}
	for _, c := range []struct {
		address int
		ok      bool
	}{{100, true}, {250, false}} {
		g := NewGather(&wire.Join{Job: "j", Cluster: "a", Layout: few})
		for r := range 5000 {
			if _, refused := g.Add(&wire.Join{Job: "j", Cluster: "a", Layout: few, Rank: uint32(r),
				Doors: []wire.Port{{Address: fmt.Sprintf("%0*d", c.address, r)}}}); refused != nil {
				t.Fatal(refused)
			}
		}
		if _, refused := g.Layout(); c.ok != (refused == nil) {
			t.Errorf("addresses of %d bytes: %v", c.address, refused)
		}
	}
}

func TestKeyIsFixed(t *testing.T) {
	// All releases must make the same key.
	const want = "d099735f2848191def9e0e5c24dd4a7e5e4a4eaf4293d34a095fe65cba0f508d"
	if got := hex.EncodeToString(Key("job-1", "hunter2").Seed()); got != want {
		t.Errorf("seed %s, want %s", got, want)
	}
	if Key("ab", "c").Equal(Key("a", "bc")) {
		t.Error("job and secret run into each other")
	}
}

func TestIdentityIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Identity){
		"job": func(i *Identity) { i.Job = "" }, "secret": func(i *Identity) { i.Secret = "" },
		"tag":      func(i *Identity) { i.TagUB = 1 << 31 },
		"time-out": func(i *Identity) { i.TimeoutMS = 0 }, "rank": func(i *Identity) { i.Rank = -1 },
		"host": func(i *Identity) { i.Host = strings.Repeat("h", 5000) },
	} {
		id := member("a", 0)
		change(&id)
		if _, err := NewJoiner(id, nonce(4)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestUnequalSettingsAreRefused(t *testing.T) {
	for _, c := range []struct{ these, those, want string }{
		{"C=x=1,y=2,z=3", "C=x=1,y=4,z=3",
			`settings "y=2" in cluster "b", "y=4" in "a": they must be equal in all clusters`},
		{"C=x=1 ZIPPER_ORDER=#12", "C=x=1",
			`settings "ZIPPER_ORDER=#12" in cluster "b", "" in "a": they must be equal in all clusters; give all halves the same --order`},
	} {
		if got := unequal(c.these, "b", c.those, "a"); got != c.want {
			t.Errorf("%s, %s: %s; want %s", c.these, c.those, got, c.want)
		}
	}
}

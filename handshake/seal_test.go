package handshake

import (
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/facts"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

func forwarderKeys(seed byte) *seal.Forwarder {
	f, err := seal.NewForwarder([seal.PublicLen]byte{0, seed})
	if err != nil {
		panic(err)
	}
	return f
}

// sealedMember is a member of a sealed job.
func sealedMember(t *testing.T, cluster string, rank, virtual int) Identity {
	id := member(cluster, rank)
	id.Level, id.Instance = wire.LevelSealed, 100+uint64(virtual)
	p, err := seal.NewJob(id.Job, id.Secret).NewParty([seal.PublicLen]byte{1, byte(virtual)}, uint32(virtual),
		id.Instance)
	if err != nil {
		t.Fatal(err)
	}
	id.Seal = p
	return id
}

// TestLayoutDistributesSealKeys checks that the Layout distributes the keys of all ranks as they
// joined, that all pairs have a key by it, and that forwarder and rank have one for their link.
func TestLayoutDistributesSealKeys(t *testing.T) {
	ids := []Identity{sealedMember(t, "a", 0, 0), sealedMember(t, "b", 0, 1), sealedMember(t, "b", 1, 2)}
	var g *Gather
	var machines []*Acceptor
	var joiners []*Joiner
	var channels []*seal.Channel
	for i, id := range ids {
		a := acceptor(byte(i), "s")
		j, e := joinUntilDecision(t, id, a)
		if e.Kind != Verified || e.Seal == nil {
			t.Fatalf("%+v", e)
		}
		if g == nil {
			g = NewGather(e.Join)
		}
		if v, refused := g.Add(e.Join); v != i || refused != nil {
			t.Fatal(v, refused)
		}
		machines, joiners, channels = append(machines, a), append(joiners, j), append(channels, e.Seal)
	}
	l, refused := g.Layout()
	if refused != nil {
		t.Fatal(refused)
	}
	for v, a := range machines {
		l.Rank = uint32(v)
		a.Admit(&l, nil)
		deliver(t, a.NextEvent, joiners[v].HandleMessage)
		e, _ := joiners[v].NextEvent()
		if e.Kind != Joined || e.Seal == nil {
			t.Fatalf("%+v", e)
		}
		f, err := channels[v].Seal(nil, []byte("head"), []byte("body"))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := e.Seal.Open(f, 4); err != nil || string(b) != "body" {
			t.Errorf("%q, %v", b, err)
		}
		for o, k := range e.Layout.Keys {
			m := seal.Member{Rank: uint32(o), Instance: k.Instance, Public: k.Key, Proof: k.Proof}
			if _, _, err := ids[v].Seal.Pair(&m); (err == nil) != (o != v) {
				t.Errorf("rank %d with %d: %v", v, o, err)
			}
		}
	}
	again := ids[0]
	again.Seal = sealedMember(t, "a", 0, 9).Seal // the instance is right, but the key is not
	_, e := joinUntilDecision(t, Identity{Job: "j", Secret: "s", Cluster: "a", Layout: layout, TagUB: 1000, Library: "lib a",
		Facts: x86,
		Host:  "host-a", TimeoutMS: 1000, Level: wire.LevelSealed, Instance: again.Seal.Instance, Seal: again.Seal},
		acceptor(7, "s"))
	e.Join.Instance = ids[0].Instance
	if _, refused := g.Again(e.Join); refused == nil {
		t.Error("a rank comes back with another key")
	}
}

// TestLinkKeyIsTheForwarders checks that a process between rank and forwarder cannot put in a key
// of its own.
func TestLinkKeyIsTheForwarders(t *testing.T) {
	a := acceptor(1, "s")
	j, err := NewJoiner(sealedMember(t, "a", 0, 0), nonce(4))
	if err != nil {
		t.Fatal(err)
	}
	deliver(t, a.NextEvent, func(h wire.Header, body []byte) {
		c, err := wire.ParseChallenge(body)
		if err != nil {
			t.Fatal(err)
		}
		c.LinkKey = forwarderKeys(66).Public
		j.HandleMessage(h, c.Append(nil))
	})
	deliver(t, j.NextEvent, a.HandleMessage)
	if e, _ := deliver(t, a.NextEvent, j.HandleMessage); e.Kind != Ended || e.Err.Code != wire.RefuseSecret {
		t.Errorf("%+v", e)
	}
}

// TestSealedAndPlainRanksDoNotMix checks that all ranks of a job are sealed or none is, and that a
// joiner believes nothing else.
func TestSealedAndPlainRanksDoNotMix(t *testing.T) {
	_, e := joinUntilDecision(t, sealedMember(t, "a", 0, 0), acceptor(1, "s"))
	g := NewGather(e.Join)
	_, e = joinUntilDecision(t, member("b", 0), acceptor(2, "s"))
	if _, refused := g.Add(e.Join); refused == nil || refused.Code != wire.RefuseSettings ||
		!strings.Contains(refused.Reason, "level plain") {
		t.Errorf("%v", refused)
	}
	sealed, plain := sealedMember(t, "a", 0, 0), member("a", 0)
	l := wire.Layout{Version: wire.Version, TagUB: 1000, Clusters: layout, Libraries: []string{"", ""}, Facts: []facts.Word{0, 0}}
	keyed := l
	keyed.Keys = make([]wire.SealKey, 3)
	for what, c := range map[string]struct {
		id Identity
		l  wire.Layout
	}{"no keys": {sealed, l}, "keys": {plain, keyed}, "another key": {sealed, keyed}} {
		a := acceptor(3, "s")
		j, _ := joinUntilDecision(t, c.id, a)
		a.Admit(&c.l, nil)
		deliver(t, a.NextEvent, j.HandleMessage)
		if r, _ := deliver(t, j.NextEvent, func(wire.Header, []byte) {}); r.Kind != Ended ||
			!strings.Contains(r.Err.Reason, what) {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// TestSealedForwardersHaveALinkKey checks that two forwarders of a sealed job have keys for their
// link.
func TestSealedForwardersHaveALinkKey(t *testing.T) {
	id := sealedMember(t, "b", 1, 2)
	id.Zippers, id.Here = hopped(0).Zippers, 0
	cert := certified(t, id)
	here, there := introduce(t, NewBridger(cert, 1, 0, &Terms{Keys: forwarderKeys(1)}, nonce(5)), acceptor(2, "s"))
	if here.Seal == nil || there.Seal == nil {
		t.Fatalf("%+v, %+v", here, there)
	}
	f, err := here.Seal.Seal(nil, []byte("head"), []byte("body"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := there.Seal.Open(f, 4); err != nil || string(b) != "body" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestSealKeysOfTooManyRanksAreRefused checks that the keys of 10 000 ranks fit into a Layout,
// which a rank accepts without a computation for each. Those of more ranks do not fit, and all
// ranks get that error.
func TestSealKeysOfTooManyRanksAreRefused(t *testing.T) {
	for _, c := range []struct {
		ranks uint32
		fits  bool
	}{{10_000, true}, {20_000, false}} {
		j := wire.Join{Version: wire.Version, Job: "j", Cluster: "a", Level: wire.LevelSealed, Rails: 1,
			Layout: []wire.Cluster{{Name: "a", Size: c.ranks - 1}, {Name: "b", Size: 1}}}
		g := NewGather(&j)
		for v := range c.ranks {
			if j.Rank = v; v == c.ranks-1 {
				j.Cluster, j.Rank = "b", 0
			}
			j.SealKey[0], j.SealKey[1], j.SealKey[2], j.Instance = 1, byte(v), byte(v>>8), uint64(v)
			if _, refused := g.Add(&j); refused != nil {
				t.Fatal(refused)
			}
		}
		l, refused := g.Layout()
		if fits := refused == nil; fits != c.fits || !fits && !strings.Contains(refused.Reason,
			"do not seal a job of so many") {
			t.Fatalf("%d ranks: %v", c.ranks, refused)
		}
		if c.fits {
			got, err := wire.ParseLayout(l.Append(nil), l.Version)
			if err != nil || len(got.Keys) != int(c.ranks) || got.Keys[9999].Key[1] != 9999&255 {
				t.Errorf("%d keys, %v", len(got.Keys), err)
			}
		}
	}
}

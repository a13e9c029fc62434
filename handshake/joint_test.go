package handshake

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/facts"
	"github.com/leidenzipper/zipper/internal/wire"
)

// waiters returns joiners of one job that a forwarder with a host key has verified.
func waiters(t *testing.T, n int) (joiners []*Joiner, acceptors []*Acceptor) {
	t.Helper()
	wide := []wire.Cluster{{Name: "a", Size: uint32(n)}}
	for r := range n {
		id := member("a", r)
		id.Layout, id.TagUB, id.HostKey = wide, 1000, publicOf(hostKey(7))
		a := proving(byte(r+1), 7)
		j, e := joinUntilDecision(t, id, a)
		if e.Kind != Verified || j.state != awaitProof {
			t.Fatalf("%+v, %v", e, j.state)
		}
		joiners, acceptors = append(joiners, j), append(acceptors, a)
	}
	return joiners, acceptors
}

// TestWaitingJoinersGetAJointProof checks that each of any number of joiners gets the proof of the
// host key before its Layout.
func TestWaitingJoinersGetAJointProof(t *testing.T) {
	for _, n := range []int{1, 2, 3, 31, 32, 33, 70} {
		joiners, acceptors := waiters(t, n)
		Prove(acceptors)
		Prove(acceptors) // changes nothing
		together := 0
		for r, a := range acceptors {
			l := wire.Layout{Version: wire.Version, Rank: uint32(r), TagUB: 10, Clusters: []wire.Cluster{{Name: "a", Size: uint32(n)}},
				Libraries: []string{""}, Facts: []facts.Word{0}}
			a.Admit(&l, nil)
			deliver(t, a.NextEvent, func(h wire.Header, body []byte) {
				if h.Type == wire.TypeJointProof {
					together++
				}
				joiners[r].HandleMessage(h, body)
			})
			if e, _ := joiners[r].NextEvent(); e.Kind != Joined {
				t.Errorf("%d of %d: %+v", r, n, e)
			}
		}
		if alone := n - together; alone > 1 {
			t.Errorf("%d of %d have a signature of their own", alone, n)
		}
	}
}

// TestOthersJointProofIsRefused checks that another rank's proof, a changed one, and one by another
// key are refused.
func TestOthersJointProofIsRefused(t *testing.T) {
	_, acceptors := waiters(t, 8)
	Prove(acceptors)
	proofs := make([]wire.JointProof, len(acceptors))
	for i, a := range acceptors {
		var err error
		if proofs[i], err = wire.ParseJointProof(a.proof[wire.HeaderLen:]); err != nil {
			t.Fatal(err)
		}
	}
	const me = 5
	change := func(do func(p *wire.JointProof)) []byte {
		p := proofs[me]
		p.Nodes = append([][wire.NodeLen]byte(nil), p.Nodes...)
		do(&p)
		return p.Append(nil)
	}
	for what, c := range map[string]struct {
		proof []byte
		good  bool
	}{
		"its own":              {proofs[me].Append(nil), true},
		"the neighbour's":      {proofs[me-1].Append(nil), false},
		"another place":        {change(func(p *wire.JointProof) { p.Place ^= 2 }), false},
		"a place outside":      {change(func(p *wire.JointProof) { p.Place |= 8 }), false},
		"a node changed":       {change(func(p *wire.JointProof) { p.Nodes[2][0] ^= 1 }), false},
		"a node less":          {change(func(p *wire.JointProof) { p.Nodes = p.Nodes[:2]; p.Place &= 3 }), false},
		"a node more":          {change(func(p *wire.JointProof) { p.Nodes = append(p.Nodes, p.Nodes[0]) }), false},
		"signature changed":    {change(func(p *wire.JointProof) { p.Signature[3] ^= 1 }), false},
		"too many nodes":       {append(proofs[me].Append(nil), make([]byte, 3*wire.NodeLen)...), false},
		"signed by itself":     {(&wire.JointProof{Signature: proofs[me].Signature}).Append(nil), false},
		"a Proof for a Layout": {(&wire.Proof{Signature: proofs[me].Signature}).Append(nil), false},
	} {
		joiners, _ := waiters(t, 8)
		j := joiners[me]
		j.HandleMessage(wire.Control(wire.TypeJointProof), c.proof)
		if good := j.state == awaitLayout; good != c.good {
			t.Errorf("%s: taken %v", what, good)
		}
		if !c.good {
			last, _ := deliver(t, j.NextEvent, func(wire.Header, []byte) {})
			if last.Err == nil || last.Err.Code != wire.RefuseHostKey && last.Err.Code != wire.RefuseMalformed {
				t.Errorf("%s: %+v", what, last)
			}
		}
	}
	// A forwarder that only shows the key.
	liar := append(hostKey(9)[:32:32], hostKey(7)[32:]...)
	joiners, acceptors := waiters(t, 2)
	for _, a := range acceptors {
		a.terms = &Terms{HostKey: liar, Keys: a.terms.Keys}
	}
	Prove(acceptors)
	joiners[0].HandleMessage(wire.Control(wire.TypeJointProof), acceptors[0].proof[wire.HeaderLen:])
	if joiners[0].state == awaitLayout {
		t.Error("a forwarder without the key is believed")
	}
}

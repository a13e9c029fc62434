package handshake

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Joiner is the rank's end of the join exchange. It is not safe for concurrent use.
type Joiner struct {
	exchange
	id        Identity
	challenge wire.Challenge
	// fresh are this end's random bytes.
	fresh [wire.NonceLen]byte
	host  witness
	// notices is the number of Notices that came.
	notices int
}

// NewJoiner starts an exchange for a new link. fresh is random bytes for this link.
func NewJoiner(id Identity, fresh [wire.NonceLen]byte) (*Joiner, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	return &Joiner{exchange: exchange{hint: forwarderHint}, id: id, fresh: fresh}, nil
}

const forwarderHint = " (is that a Zipper forwarder?)"

// HandleMessage handles a frame from the forwarder. It does not keep body.
func (j *Joiner) HandleMessage(h wire.Header, body []byte) {
	if j.ends(h, body) {
		return
	}
	switch {
	case h.Type == wire.TypePing:
		j.send(wire.TypePong, nil)
	case h.Type == wire.TypeNotice && j.state == awaitLayout:
		n, err := wire.ParseNotice(body)
		if err != nil {
			j.malformed(h, err)
			return
		}
		if j.notices++; j.notices <= maxNotices {
			j.push(Event{Kind: Notified, Text: wire.Printable(n.Text)})
		}
	case h.Type == wire.TypeChallenge && j.state == awaitChallenge:
		c, ok := j.challenged(h, body)
		if !ok {
			return
		}
		if r := j.host.challenged(&c, body, j.id.HostKey); r != nil {
			j.refuse(r.Code, r.Reason)
			return
		}
		j.challenge = c
		if c.NAT {
			j.to(awaitInside)
			j.push(Event{Kind: Asked})
			return
		}
		j.join("")
	case h.Type == wire.TypeProof && j.state == awaitProof:
		p, err := wire.ParseProof(body)
		j.proven(h, err, err == nil && j.host.good(&p))
	case h.Type == wire.TypeJointProof && j.state == awaitProof:
		p, err := wire.ParseJointProof(body)
		j.proven(h, err, err == nil && j.host.goodJoint(&p))
	case h.Type == wire.TypeLayout && j.state == awaitLayout:
		version, _ := j.challenge.Common()
		l, err := wire.ParseLayout(body, version)
		if err == nil {
			err = j.check(&l)
		}
		if err != nil {
			j.malformed(h, err)
			return
		}
		e := Event{Kind: Joined, Layout: l}
		if j.id.Seal != nil {
			if e.Seal, err = j.id.Seal.Link(j.challenge.LinkKey, j.challenge.Nonce); err != nil {
				j.malformed(h, err)
				return
			}
		}
		j.push(e)
		j.to(over)
	default:
		j.unexpected(h)
	}
}

// proven continues after a Proof.
func (j *Joiner) proven(h wire.Header, err error, good bool) {
	switch {
	case err != nil:
		j.malformed(h, err)
	case !good:
		j.refuse(wire.RefuseHostKey, noProof)
	default:
		j.to(awaitLayout)
	}
}

// Inside answers Asked with the IP address and port where this process takes connections that the
// forwarder's kernel passes on. An empty address means that it takes none.
func (j *Joiner) Inside(address string) {
	if j.state == awaitInside {
		j.join(address)
	}
}

func (j *Joiner) join(inside string) {
	join, err := j.id.join(&j.challenge, j.fresh, inside)
	if err != nil {
		j.malformed(wire.Control(wire.TypeChallenge), err)
		return
	}
	j.send(wire.TypeJoin, &join)
	j.host.answered(wire.TypeJoin, &join)
	if j.host.waits() {
		j.to(awaitProof)
		return
	}
	j.to(awaitLayout)
}

// check compares the forwarder's layout with ours, because the engine computes with it.
func (j *Joiner) check(l *wire.Layout) error {
	if len(l.Clusters) != len(j.id.Layout) {
		return fmt.Errorf("layout of %d clusters, expected %d", len(l.Clusters), len(j.id.Layout))
	}
	for i, c := range l.Clusters {
		if c != j.id.Layout[i] {
			return fmt.Errorf("cluster %d is %q of %d, expected %q of %d", i, c.Name, c.Size, j.id.Layout[i].Name,
				j.id.Layout[i].Size)
		}
	}
	if c, r := l.ClusterOf(int(l.Rank)); l.Clusters[c].Name != j.id.Cluster || r != j.id.Rank {
		return fmt.Errorf("virtual rank %d is rank %d of %q, expected %d of %q", l.Rank, r, l.Clusters[c].Name,
			j.id.Rank, j.id.Cluster)
	}
	if int(l.TagUB) > j.id.TagUB {
		return fmt.Errorf("highest tag %d is above ours, %d", l.TagUB, j.id.TagUB)
	}
	switch sealed := j.id.Seal != nil; {
	case sealed && l.Keys == nil:
		return errors.New("no keys for a sealed job")
	case !sealed && l.Keys != nil:
		return errors.New("keys for a job that is not sealed")
	case sealed && l.Keys[l.Rank].Key != j.id.Seal.Public:
		return errors.New("another key than this process's own")
	}
	return nil
}

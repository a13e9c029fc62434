package handshake

import (
	"crypto/ed25519"
	"crypto/sha256"

	"github.com/leidenzipper/zipper/internal/wire"
)

// One signature proves the host key to all ranks of a job that wait at a forwarder, up to
// 2^wire.MaxDepth at a time: the text that each must see signed is a leaf of a tree of hashes, and
// the root is signed. A rank gets the nodes beside its path to the root, from which it computes the
// root. Leaves and nodes begin differently, so one cannot be shown for the other; an attacker who
// changes a leaf has to find another one with the same hash. Roughtime signs for its clients in the
// same way.

// Jointly is the largest number of joiners to which Prove proves with one signature.
const Jointly = 1 << wire.MaxDepth

// Prove has the forwarder prove its host key to all those of these joiners that it has verified and
// not yet proven it to. The Proofs are sent with the next frame to each.
func Prove(list []*Acceptor) {
	var several []*Acceptor
	for _, a := range list {
		if a.state == awaitDecision && a.unproven != nil {
			several = append(several, a)
		}
	}
	for len(several) > 0 {
		n := 1
		for 2*n <= len(several) && n < Jointly {
			n *= 2
		}
		proveJointly(several[:n])
		several = several[n:]
	}
}

// proveJointly does the work of Prove for a power of two.
func proveJointly(list []*Acceptor) {
	if len(list) == 1 {
		return // it has a proof of its own
	}
	level := make([][wire.NodeLen]byte, len(list))
	proofs := make([]wire.JointProof, len(list))
	for i, a := range list {
		level[i] = leaf(a.unproven)
		proofs[i].Place, proofs[i].Nodes = uint32(i), make([][wire.NodeLen]byte, 0, wire.MaxDepth)
	}
	for up := 0; len(level) > 1; up++ {
		for i := range proofs {
			proofs[i].Nodes = append(proofs[i].Nodes, level[i>>up^1])
		}
		for i := range len(level) / 2 {
			level[i] = node(level[2*i], level[2*i+1])
		}
		level = level[:len(level)/2]
	}
	signature := ed25519.Sign(list[0].terms.HostKey, signedRoot(level[0]))
	for i, a := range list {
		copy(proofs[i].Signature[:], signature)
		a.proof = wire.AppendFrame(make([]byte, 0, roomForFrame), wire.Control(wire.TypeJointProof), &proofs[i])
		a.unproven = nil
	}
}

func leaf(proof []byte) [wire.NodeLen]byte { return sha256.Sum256(append([]byte{0}, proof...)) }

func node(left, right [wire.NodeLen]byte) [wire.NodeLen]byte {
	b := [1 + 2*wire.NodeLen]byte{1}
	copy(b[1:], left[:])
	copy(b[1+wire.NodeLen:], right[:])
	return sha256.Sum256(b[:])
}

func signedRoot(root [wire.NodeLen]byte) []byte {
	return append([]byte("zipper proofs\x00"), root[:]...)
}

// rootOf returns the signed text, if the text that one rank must see signed is at the place that p
// says.
func rootOf(p *wire.JointProof, proof []byte) []byte {
	at := leaf(proof)
	for i, beside := range p.Nodes {
		if p.Place>>i&1 == 0 {
			at = node(at, beside)
		} else {
			at = node(beside, at)
		}
	}
	return signedRoot(at)
}

package seal

import (
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// Pass is a key that the ranks of a job and one forwarder have in common, or two forwarders, and
// nobody else: what is shown to a forwarder to be let in. Both ends make it from one private key
// and the other end's public one, so nothing of it travels. Safe for concurrent use.
type Pass struct{ key []byte }

// Guest is the job's end of its passes: a key pair of the job's, the same in all its ranks. Safe
// for concurrent use.
type Guest struct {
	Public  [PublicLen]byte
	private *ecdh.PrivateKey
}

// NewGuest derives a job's pair from its id and secret.
func NewGuest(id, secret string) (*Guest, error) {
	seed := expand(extract([]byte(secret), []byte("zipper guest\x00"+id)), "zipper guest", secretLen)
	private, err := ecdh.X25519().NewPrivateKey(seed)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	g := &Guest{private: private}
	copy(g.Public[:], private.PublicKey().Bytes())
	return g, nil
}

// Pass is that for a forwarder with that key.
func (g *Guest) Pass(forwarder [PublicLen]byte) (*Pass, error) {
	return newPass(g.private, forwarder, g.Public, forwarder)
}

// Pass is that of the job whose pair has that public half.
func (f *Forwarder) Pass(guest [PublicLen]byte) (*Pass, error) {
	return newPass(f.private, guest, guest, f.Public)
}

// Visit is the pass that another forwarder, with that key, knows this one by.
func (f *Forwarder) Visit(other [PublicLen]byte) (*Pass, error) {
	return newPass(f.private, other, f.Public, other)
}

func newPass(private *ecdh.PrivateKey, other, guest, forwarder [PublicLen]byte) (*Pass, error) {
	shared, err := agree(private, other)
	if err != nil {
		return nil, err
	}
	salt := append([]byte("zipper pass"), guest[:]...)
	key := expand(extract(shared, append(salt, forwarder[:]...)), "zipper pass", secretLen)
	return &Pass{key}, nil
}

// Show is what goes with a text, which may be in parts, to show that it is by somebody who has the
// pass.
func (p *Pass) Show(text ...[]byte) (shown [ProofLen]byte) {
	h := hmac.New(sha256.New, p.key)
	for _, part := range text {
		h.Write(part)
	}
	copy(shown[:], h.Sum(nil))
	return shown
}

// Good reports whether that is what goes with the text.
func (p *Pass) Good(shown [ProofLen]byte, text ...[]byte) bool {
	want := p.Show(text...)
	return hmac.Equal(want[:], shown[:])
}

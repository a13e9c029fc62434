package seal

import (
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// Pass is a key that only the ranks of a job and one forwarder share, or two forwarders. With it
// they prove that they may use the forwarder. Both ends derive it from their private key and the
// other end's public one, so it is never sent. It is safe for concurrent use.
type Pass struct{ key []byte }

// Guest is the job's end of its passes: a key pair of the job, the same in all its ranks. It is
// safe for concurrent use.
type Guest struct {
	Public  [PublicLen]byte
	private *ecdh.PrivateKey
}

// NewGuest derives a job's key pair from its id and secret.
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

// Pass returns the pass for a forwarder with a public key.
func (g *Guest) Pass(forwarder [PublicLen]byte) (*Pass, error) {
	return newPass(g.private, forwarder, g.Public, forwarder)
}

// Pass returns the pass of a job with a public key.
func (f *Forwarder) Pass(guest [PublicLen]byte) (*Pass, error) {
	return newPass(f.private, guest, guest, f.Public)
}

// Visit returns the pass by which another forwarder, with a public key, recognises this one.
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

// Show returns the authentication of a text, which may be in parts. It proves that its sender has
// the pass.
func (p *Pass) Show(text ...[]byte) (shown [ProofLen]byte) {
	h := hmac.New(sha256.New, p.key)
	for _, part := range text {
		h.Write(part)
	}
	copy(shown[:], h.Sum(nil))
	return shown
}

// Good reports whether shown is the authentication of the text.
func (p *Pass) Good(shown [ProofLen]byte, text ...[]byte) bool {
	want := p.Show(text...)
	return hmac.Equal(want[:], shown[:])
}

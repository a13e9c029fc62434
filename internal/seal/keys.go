// Package seal has the keys of a sealed job: those that vouch for a rank's key, those of a pair of
// ranks and of a link. It also encrypts and decrypts frames. It has no I/O, no clock, and no
// randomness of its own.
//
// Every rank makes a fresh X25519 key for the job. Its Join carries the public half, and the Layout
// distributes all of them. A Proof, a MAC by the job's secret, ties the key to job, rank and
// instance. So no forwarder can insert a key of its own, because it does not have the secret.
//
//	job secret ─HKDF-Extract(job id)→ job key ─Expand→ key of proofs, key of words
//	X25519(a, b) ‖ job key ─HKDF-Extract→ pair key ─Expand(a, b as ranks, instances, publics)→ a→b
//	                                               ─Expand(b, a …)→ b→a
//	X25519(rank, forwarder) ─HKDF-Extract(nonce)→ link key ─Expand(role)→ up, down
//
// An attacker who learns the secret later cannot decrypt earlier frames, because the X25519 keys
// are gone with their processes. All algorithms are of the standard library: X25519, HKDF and HMAC
// with SHA-256, AES-128 in GCM.
//
// Lengths are in bytes. Job, Party, Forwarder, Guest and Pass are safe for concurrent use; all
// other values are not.
package seal

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// PublicLen is the length of a public key, and of the random bytes that NewParty makes one
	// from.
	PublicLen = 32
	// ProofLen is the length of a Proof: a MAC that an attacker can only try out by joining.
	ProofLen = 16
	// NonceLen is the length of the nonce of a link.
	NonceLen = 32

	secretLen = 32 // length of keys from which others are derived
	aesLen    = 16 // length of keys that encrypt frames
	saltLen   = 4  // length of the nonce's part that belongs to the key
)

var (
	// ErrNotVouched means that a key does not belong to a rank that knows the job's secret.
	ErrNotVouched = errors.New("the key of the other end was not made by a rank with the job's secret")
	errWeak       = errors.New("seal: the other end's key is invalid")
)

// Job has the keys that are derived from the secret of a job.
type Job struct {
	key    []byte
	proofs []byte
	words  []byte
}

// NewJob derives the keys of a job from its id and secret.
func NewJob(id, secret string) *Job {
	key := extract([]byte(secret), []byte("zipper sealed job\x00"+id))
	return &Job{key: key, proofs: expand(key, "zipper proof", secretLen), words: expand(key, "zipper word", secretLen)}
}

// Member has the public data of a rank that other ranks need.
type Member struct {
	Rank     uint32 // virtual rank
	Instance uint64 // instance of its process
	Public   [PublicLen]byte
	Proof    [ProofLen]byte
}

// append appends the data on which a Member's keys depend.
func (m *Member) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.Rank)
	b = binary.LittleEndian.AppendUint64(b, m.Instance)
	return append(b, m.Public[:]...)
}

// Prove returns the Proof of a Member whose other fields are set.
func (j *Job) Prove(m *Member) (proof [ProofLen]byte) {
	copy(proof[:], mac(j.proofs, m.append(nil)))
	return proof
}

// Proven reports whether a Member's Proof was made with the job's secret.
func (j *Job) Proven(m *Member) bool {
	want := j.Prove(m)
	return hmac.Equal(want[:], m.Proof[:])
}

// Word returns the authentication of a text from a rank to all others, an Abort. Anyone with the
// job's secret can verify it; forwarders cannot.
func (j *Job) Word(rank uint32, instance uint64, text []byte) (word [ProofLen]byte) {
	b := binary.LittleEndian.AppendUint32(nil, rank)
	b = binary.LittleEndian.AppendUint64(b, instance)
	copy(word[:], mac(j.words, append(b, text...)))
	return word
}

// VerifyWord reports whether word is the authentication of a text from that rank.
func (j *Job) VerifyWord(rank uint32, instance uint64, text []byte, word [ProofLen]byte) bool {
	want := j.Word(rank, instance, text)
	return hmac.Equal(want[:], word[:])
}

// Party has the private key of a rank, and makes all its keys.
type Party struct {
	Member
	job     *Job
	private *ecdh.PrivateKey
}

// NewParty makes a rank's key from fresh random bytes, and its Proof.
func (j *Job) NewParty(random [PublicLen]byte, rank uint32, instance uint64) (*Party, error) {
	private, err := ecdh.X25519().NewPrivateKey(random[:])
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	p := &Party{Member: Member{Rank: rank, Instance: instance}, job: j, private: private}
	copy(p.Public[:], private.PublicKey().Bytes())
	p.Proof = j.Prove(&p.Member)
	return p, nil
}

// Job returns the keys that are derived from the job's secret.
func (p *Party) Job() *Job { return p.job }

// Pair derives the keys of a pair of ranks, one for each direction. The error is ErrNotVouched if
// the other rank's key was not made with the job's secret. It takes about as long as sending a
// message.
func (p *Party) Pair(other *Member) (*Sealer, *Opener, error) {
	if !p.job.Proven(other) || other.Rank == p.Rank {
		return nil, nil, ErrNotVouched
	}
	shared, err := agree(p.private, other.Public)
	if err != nil {
		return nil, nil, err
	}
	key := extract(append(shared, p.job.key...), []byte("zipper pair"))
	there := "zipper pair" + string(other.append(p.append(nil)))
	back := "zipper pair" + string(p.append(other.append(nil)))
	return ends(key, there, back)
}

// Link derives the keys of a link to a forwarder with a public key. nonce must be fresh for each
// link.
func (p *Party) Link(forwarder [PublicLen]byte, nonce [NonceLen]byte) (*Channel, error) {
	key, err := link(p.private, p.Public, forwarder, forwarder, nonce)
	if err != nil {
		return nil, err
	}
	return channel(key, linkUp, linkDown)
}

// Forwarder has the private key of a forwarder, and makes the keys of its links. It is safe for
// concurrent use.
type Forwarder struct {
	Public  [PublicLen]byte
	private *ecdh.PrivateKey
}

// NewForwarder makes a forwarder's key from fresh random bytes.
func NewForwarder(random [PublicLen]byte) (*Forwarder, error) {
	private, err := ecdh.X25519().NewPrivateKey(random[:])
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	f := &Forwarder{private: private}
	copy(f.Public[:], private.PublicKey().Bytes())
	return f, nil
}

// Link derives the keys of a link that a rank or a forwarder with a public key has dialled.
func (f *Forwarder) Link(dialler [PublicLen]byte, nonce [NonceLen]byte) (*Channel, error) {
	key, err := link(f.private, dialler, f.Public, dialler, nonce)
	if err != nil {
		return nil, err
	}
	return channel(key, linkDown, linkUp)
}

// Dialled derives the keys of a link that this forwarder has dialled to another one.
func (f *Forwarder) Dialled(other [PublicLen]byte, nonce [NonceLen]byte) (*Channel, error) {
	key, err := link(f.private, f.Public, other, other, nonce)
	if err != nil {
		return nil, err
	}
	return channel(key, linkUp, linkDown)
}

const (
	linkUp   = "zipper link up"
	linkDown = "zipper link down"
)

func link(private *ecdh.PrivateKey, dialler, listener, other [PublicLen]byte, nonce [NonceLen]byte) ([]byte, error) {
	shared, err := agree(private, other)
	if err != nil {
		return nil, err
	}
	salt := append([]byte("zipper link"), nonce[:]...)
	salt = append(append(salt, dialler[:]...), listener[:]...)
	return extract(shared, salt), nil
}

// agree returns the X25519 agreement of a private key and another public one.
func agree(private *ecdh.PrivateKey, other [PublicLen]byte) ([]byte, error) {
	public, err := ecdh.X25519().NewPublicKey(other[:])
	if err != nil {
		return nil, errWeak
	}
	shared, err := private.ECDH(public)
	if err != nil { // a point of low order, for which everyone could know the result
		return nil, errWeak
	}
	return shared, nil
}

func extract(secret, salt []byte) []byte {
	key, err := hkdf.Extract(sha256.New, secret, salt)
	if err != nil {
		panic("seal: " + err.Error()) // impossible: SHA-256 is allowed everywhere
	}
	return key
}

func expand(key []byte, info string, n int) []byte {
	out, err := hkdf.Expand(sha256.New, key, info, n)
	if err != nil {
		panic("seal: " + err.Error()) // impossible: n is small
	}
	return out
}

func mac(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

// Package handshake joins a rank to a job at a forwarder, as state machines without sockets,
// goroutines or clocks: HandleMessage handles a frame, and NextEvent returns a task for the owner.
//
//	forwarder (Acceptor)                      rank (Joiner)
//	Challenge{version, nonce, nat, host key} ──►
//	                                 ◄──      Join{who, layout, inside, ticket, nonce, public key, signature}
//	Proof of the host key            ──►
//	Layout, when all are in (Gather) ──►      joined
//	or Refuse{code, reason}          ──►      refused (the rank may refuse too: other version)
//
// The job's key pair is Ed25519 with the seed SHA-256("zipper job" ‖ job id ‖ 0 ‖ secret). The
// signature covers "zipper join" ‖ 0 ‖ nonce ‖ the Join up to it. So it is good for one link only,
// and shows that the joiner knows the secret without showing the secret.
//
// The pass follows the signature: a MAC that only the job's ranks and this forwarder can make
// (package seal), which proves the same. Once the signature of one rank has tied the pass to the
// job, the pass alone is checked. The forwarder's Proof (host.go) is as strong; it may come late,
// but before any other frame that the rank believes. Nothing is encrypted.
//
// A rank of a sealed job has its X25519 key in the Join (package seal), with a proof that a process
// that knows the secret made that key; the Layout distributes these keys. The forwarder's key is in
// the Challenge and comes back in the Join, signed with the job's key, so each end knows that the
// other has its key.
//
// The owner of a machine (Drive) has the link and the clock. A failure of an exchange is an event
// with a *Refused, of either end; a stranger's frames can do no more than that. Times are
// milliseconds. No value is safe for concurrent use.
package handshake

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/leidenzipper/zipper/internal/facts"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Identity describes a rank and its job.
type Identity struct {
	Job    string
	Secret string
	// Cluster is the name of this rank's cluster.
	Cluster string
	// Rank is the native rank in that cluster.
	Rank int
	// Layout has all clusters in order of virtual rank.
	Layout []wire.Cluster
	// TagUB is the highest tag of the native library.
	TagUB int
	// Library is the native library with its version, for users.
	Library string
	// Facts is the format of data in this process's memory.
	Facts facts.Word
	// Model names the processor for forwarders that do not know facts.
	Model string
	// Protocol is how messages travel: empty, or "classic".
	Protocol string
	// Settings are the other settings that must be equal in the whole job, as NAME=VALUE words.
	Settings string
	Host     string
	// Origin is the user for whom the process runs (wire.Join).
	Origin string
	Level  wire.Level
	// Patience is how long a rank out of reach is waited for, in milliseconds; 0 means not at all.
	Patience int64
	// Rails is the number of forwarders that this rank joins; 0 means 1.
	Rails int
	// Instance is random, one per process: it lets this process, and no other, return to a job
	// after a lost link.
	Instance uint64
	// Networks are the networks without ranks of a job with several hops.
	Networks []string
	// Zippers are all forwarders of such a job.
	Zippers []wire.Zipper
	// Here is the index in Zippers of the forwarder that this link goes to.
	Here int
	// Seal is the process's key if its job is sealed, else nil.
	Seal *seal.Party
	// Doors are the addresses where other clusters' ranks reach this one without a forwarder.
	Doors []wire.Port
	// HostKey is the key that the forwarder at this link's other end must have; zero means any.
	HostKey [wire.PublicKeyLen]byte
	// Ticket admits the job where forwarders demand one; it may be empty.
	Ticket string
	// TimeoutMS is how long to wait for the others at the forwarder, in milliseconds: 1 to 2^32-1.
	TimeoutMS int64
	// Leaving tells that the rank had joined and lost its link between its Bye and the answer. It
	// waits for no other rank.
	Leaving bool
	// Lost are the clusters that the process knows to be lost, by index in Layout. A forwarder that
	// was restarted does not wait for them.
	Lost []int
}

// RowID returns the id under which row k of a job of several hops joins (vrank.Rows), from 0: for
// the forwarders every row is a job of its own.
func RowID(job string, k int) string {
	if k == 0 {
		return job
	}
	return fmt.Sprintf("%s%s%d", job, rowMark, k+1)
}

// JobID returns the id of the job that joins under this one.
func JobID(id string) string {
	job, _, _ := strings.Cut(id, rowMark)
	return job
}

const rowMark = "#" // users' job ids do not contain it

// Validate returns an error for a field that is missing or out of range.
func (id *Identity) Validate() error {
	switch {
	case id.Job == "":
		return errors.New("handshake: the job has no id")
	case id.Secret == "":
		return errors.New("handshake: the job has no secret")
	case id.TagUB < 0 || id.TagUB > 1<<31-1:
		return fmt.Errorf("handshake: highest tag %d is out of range", id.TagUB)
	case id.TimeoutMS < 1 || id.TimeoutMS > 1<<32-1:
		return fmt.Errorf("handshake: time-out of %d ms is out of range", id.TimeoutMS)
	case id.Patience < 0 || id.Patience > wire.MaxPatience:
		return fmt.Errorf("handshake: patience of %d ms is out of range", id.Patience)
	case id.Rails < 0 || id.Rails > 1<<16-1:
		return fmt.Errorf("handshake: %d forwarders", id.Rails)
	case (id.Level == wire.LevelSealed) != (id.Seal != nil):
		return fmt.Errorf("handshake: level %v without the key for it", id.Level)
	case id.Seal != nil && id.Seal.Instance != id.Instance:
		return errors.New("handshake: the key is another process's")
	case len(id.Ticket) > wire.MaxTicket:
		return fmt.Errorf("handshake: a ticket of %d bytes, at most %d are possible", len(id.Ticket), wire.MaxTicket)
	case id.Rank < 0:
		return fmt.Errorf("handshake: rank %d is out of range", id.Rank)
	}
	for _, s := range []string{id.Job, id.Cluster, id.Library, id.Model, id.Protocol, withLost(id.Settings, id.Lost), id.Host, id.Origin} {
		if len(s) > wire.MaxName {
			return fmt.Errorf("handshake: %.20q… is longer than %d bytes", s, wire.MaxName)
		}
	}
	return nil
}

// SetLevel sets the job's level. A process of a sealed job gets its key, made of fresh random
// bytes; Job, Secret, Layout, Cluster, Rank and Instance must be set before.
func (id *Identity) SetLevel(l wire.Level, random [seal.PublicLen]byte) (err error) {
	id.Level, id.Seal = l, nil
	if l != wire.LevelSealed {
		return nil
	}
	rank := uint32(id.Rank)
	for _, c := range id.Layout {
		if c.Name == id.Cluster {
			break
		}
		rank += c.Size
	}
	id.Seal, err = seal.NewJob(JobID(id.Job), id.Secret).NewParty(random, rank, id.Instance)
	return err
}

// Key returns the job's key pair, which all its rows have.
func Key(job, secret string) ed25519.PrivateKey {
	h := sha256.New()
	h.Write([]byte("zipper job" + JobID(job) + "\x00" + secret))
	return ed25519.NewKeyFromSeed(h.Sum(nil))
}

// join makes the signed Join for one link, whose other end has sent the Challenge; fresh is random
// bytes for it. It fails if the Challenge's link key is not valid.
func (id *Identity) join(c *wire.Challenge, fresh [wire.NonceLen]byte, inside string) (wire.Join, error) {
	key := Key(id.Job, id.Secret)
	version, _ := c.Common()
	j := wire.Join{
		Version: version, TimeoutMS: uint32(id.TimeoutMS), Job: id.Job, Cluster: id.Cluster, Rank: uint32(id.Rank),
		TagUB: uint32(id.TagUB), Library: id.Library, Facts: id.Facts, Model: id.Model, Protocol: id.Protocol,
		Settings: withLost(id.Settings, id.Lost),
		Host:     id.Host, Origin: id.Origin, Level: id.Level, Patience: uint32(id.Patience),
		Rails: uint16(max(1, id.Rails)), Instance: id.Instance, Layout: id.Layout,
		Networks: id.Networks, Zippers: id.Zippers, Here: uint16(id.Here), Doors: id.Doors, Inside: inside,
		LinkKey: c.LinkKey, Ticket: id.Ticket, Nonce: fresh,
	}
	if id.Leaving {
		j.TimeoutMS = 0
	}
	if id.Seal != nil {
		j.SealKey, j.Proof = id.Seal.Public, id.Seal.Proof
	}
	copy(j.PublicKey[:], key.Public().(ed25519.PublicKey))
	guest, err := seal.NewGuest(JobID(id.Job), id.Secret)
	if err != nil {
		return j, err
	}
	pass, err := guest.Pass(c.LinkKey)
	if err != nil {
		return j, err
	}
	j.Guest = guest.Public
	copy(j.Signature[:], ed25519.Sign(key, signed(&j, c.Nonce)))
	j.Pass = pass.Show([]byte(shownWith), c.Nonce[:], j.AppendUnshown(nil))
	return j, nil
}

// verify tells whether the Join's signature is by its own public key and for this nonce.
func verify(j *wire.Join, nonce [wire.NonceLen]byte) bool {
	return ed25519.Verify(j.PublicKey[:], signed(j, nonce), j.Signature[:])
}

func signed(j *wire.Join, nonce [wire.NonceLen]byte) []byte {
	b := append([]byte("zipper join\x00"), nonce[:]...)
	return j.AppendUnsigned(b)
}

// shownWith begins the text for which a pass is shown; the nonce and the Join up to its pass
// follow.
const shownWith = "zipper join pass\x00"

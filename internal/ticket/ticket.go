// Package ticket lets a site decide who may run jobs over its forwarders. A ticket names a user, a
// job, a largest number of ranks, and a time after which no new job begins with it. It is a JSON
// Web Token (RFC 7519) signed with EdDSA by the site's key. Forwarders only have the public half of
// the key, so an intruder on a forwarder cannot make tickets. A ticket is bound to the job's key
// (RFC 7800, "cnf"), so an eavesdropper cannot use it. All functions are safe for concurrent use.
package ticket

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Ticket is the content of a ticket.
type Ticket struct {
	User    string
	Job     string            // job id
	Key     ed25519.PublicKey // the job's public key (handshake.Key)
	Ranks   int               // largest number of ranks, in all clusters together
	Expires time.Time         // fractions of a second are dropped
}

// claims is the JSON form of a Ticket.
type claims struct {
	jwt.RegisteredClaims
	Job   string       `json:"job"`
	Ranks int          `json:"ranks"`
	Key   confirmation `json:"cnf"`
}

// confirmation is the key whose owner the ticket is for, as RFC 7800 and RFC 8037 define it.
type confirmation struct {
	JWK struct {
		Type  string `json:"kty"` // OKP
		Curve string `json:"crv"` // Ed25519
		X     string `json:"x"`
	} `json:"jwk"`
}

// audience distinguishes tickets from other tokens that a site signs with the same key.
const audience = "zipper"

// Make signs a ticket and returns its text.
func Make(t Ticket, site ed25519.PrivateKey, now time.Time) (string, error) {
	switch {
	case t.User == "" || len(t.User) > wire.MaxName:
		return "", fmt.Errorf("ticket: want a user's name of 1 to %d bytes", wire.MaxName)
	case t.Job == "" || len(t.Job) > wire.MaxName:
		return "", errors.New("ticket: want a job id")
	case t.Ranks < 1 || t.Ranks > wire.MaxRanks:
		return "", fmt.Errorf("ticket: %d ranks, want 1 to %d", t.Ranks, wire.MaxRanks)
	case len(t.Key) != ed25519.PublicKeySize:
		return "", errors.New("ticket: want the job's key")
	case !t.Expires.After(now):
		return "", errors.New("ticket: it would expire before it begins")
	}
	c := claims{Job: t.Job, Ranks: t.Ranks, RegisteredClaims: jwt.RegisteredClaims{Subject: t.User,
		Audience: jwt.ClaimStrings{audience}, IssuedAt: jwt.NewNumericDate(now),
		ExpiresAt: jwt.NewNumericDate(t.Expires)}}
	c.Key.JWK.Type, c.Key.JWK.Curve, c.Key.JWK.X = "OKP", "Ed25519", base64.RawURLEncoding.EncodeToString(t.Key)
	return jwt.NewWithClaims(jwt.SigningMethodEdDSA, &c).SignedString(site)
}

// Parse checks a ticket's signature and time, and returns its content.
func Parse(text string, site ed25519.PublicKey, now time.Time) (Ticket, error) {
	var c claims
	_, err := jwt.ParseWithClaims(text, &c, func(*jwt.Token) (any, error) { return site, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithAudience(audience), jwt.WithTimeFunc(func() time.Time { return now }), jwt.WithLeeway(leeway), jwt.WithStrictDecoding())
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return Ticket{}, errors.New("it has expired")
	case err != nil:
		return Ticket{}, fmt.Errorf("it is not one of this site: %w", err)
	}
	key, err := base64.RawURLEncoding.DecodeString(c.Key.JWK.X)
	if err != nil || len(key) != ed25519.PublicKeySize || c.Key.JWK.Type != "OKP" || c.Key.JWK.Curve != "Ed25519" {
		return Ticket{}, errors.New("it has no key of a job in it")
	}
	return Ticket{User: c.Subject, Job: c.Job, Key: key, Ranks: c.Ranks, Expires: c.ExpiresAt.Time}, nil
}

// Check returns the user of a Join whose signature is valid, or an error if its ticket is not.
func Check(j *wire.Join, site ed25519.PublicKey, now time.Time) (user string, err error) {
	if j.Ticket == "" {
		return "", errors.New("this forwarder requires a ticket: ask the site for one (--ticket-file)")
	}
	t, err := Parse(j.Ticket, site, now)
	if err == nil {
		err = t.fits(j)
	}
	if err != nil {
		return "", fmt.Errorf("this forwarder rejects the job's ticket: %s", wire.Printable(err.Error()))
	}
	return wire.Printable(t.User), nil
}

func (t *Ticket) fits(j *wire.Join) error {
	switch n := wire.Ranks(j.Layout); {
	case handshake.JobID(j.Job) != t.Job:
		return fmt.Errorf("it is for job %q", t.Job)
	case !t.Key.Equal(ed25519.PublicKey(j.PublicKey[:])):
		return errors.New("it was made for another secret")
	case n > t.Ranks:
		return fmt.Errorf("it is for %d ranks, the job has %d", t.Ranks, n)
	}
	return nil
}

package ticket

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

var (
	site = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	now  = time.Unix(1_800_000_000, 0)
)

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

func sample() Ticket {
	return Ticket{User: "alice", Job: "j1", Key: public(handshake.Key("j1", "secret")), Ranks: 4,
		Expires: now.Add(time.Hour)}
}

func made(t testing.TB, ticket Ticket, key ed25519.PrivateKey) string {
	t.Helper()
	s, err := Make(ticket, key, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func joinOf(ticket string) *wire.Join {
	j := &wire.Join{Job: "j1", Cluster: "a", Layout: []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 2}},
		Ticket: ticket}
	copy(j.PublicKey[:], sample().Key)
	return j
}

func TestCheck(t *testing.T) {
	good := made(t, sample(), site)
	if len(good) > wire.MaxTicket {
		t.Errorf("%d bytes", len(good))
	}
	longest := sample()
	longest.User, longest.Job = strings.Repeat("u", wire.MaxName), strings.Repeat("j", wire.MaxName)
	if n := len(made(t, longest, site)); n > wire.MaxTicket {
		t.Errorf("the longest has %d bytes", n)
	}
	other := ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", ed25519.SeedSize)))
	set := func(change func(*Ticket)) string { k := sample(); change(&k); return made(t, k, site) }
	for _, c := range []struct {
		what   string
		ticket string
		change func(*wire.Join)
		at     time.Time
		want   string // part of the error; empty if there is none
	}{
		{"good", good, nil, now, ""},
		{"a second row", good, func(j *wire.Join) { j.Job = handshake.RowID("j1", 1) }, now, ""},
		{"fewer ranks", good, func(j *wire.Join) { j.Layout[0].Size = 1 }, now, ""},
		{"none", "", nil, now, "requires a ticket"},
		{"nonsense", "a.b.c", nil, now, "not one of this site"},
		{"of another site", made(t, sample(), other), nil, now, "not one of this site"},
		{"expired", good, nil, now.Add(2 * time.Hour), "expired"},
		{"just expired, clocks differ", good, nil, now.Add(time.Hour + leeway/2), ""},
		{"not made yet", good, nil, now.Add(-time.Hour), "not one of this site"},
		{"another job", set(func(k *Ticket) { k.Job = "j2" }), nil, now, `for job "j2"`},
		{"overheard, and used with another secret", good, func(j *wire.Join) { j.PublicKey[0]++ }, now, "another secret"},
		{"more ranks", good, func(j *wire.Join) { j.Layout[0].Size = 3 }, now, "4 ranks, the job has 5"},
		{"changed", good[:len(good)-2] + "AA", nil, now, "not one of this site"},
	} {
		j := joinOf(c.ticket)
		if c.change != nil {
			c.change(j)
		}
		user, err := Check(j, public(site), c.at)
		if err == nil && user != "alice" {
			t.Errorf("%s: %q", c.what, user)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	got, err := Parse(good, public(site), now)
	if err != nil || got.User != "alice" || !got.Expires.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestOtherMethods checks the classic attacks: the public key as a shared secret, and no signature
// at all.
func TestOtherMethods(t *testing.T) {
	c := claims{Job: "j1", Ranks: 4, RegisteredClaims: jwt.RegisteredClaims{Audience: jwt.ClaimStrings{audience},
		ExpiresAt: jwt.NewNumericDate(now.Add(time.Hour))}}
	c.Key.JWK.Type, c.Key.JWK.Curve, c.Key.JWK.X = "OKP", "Ed25519", base64.RawURLEncoding.EncodeToString(sample().Key)
	for method, key := range map[jwt.SigningMethod]any{jwt.SigningMethodNone: jwt.UnsafeAllowNoneSignatureType,
		jwt.SigningMethodHS256: []byte(public(site))} {
		s, err := jwt.NewWithClaims(method, &c).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		if good(s) {
			t.Errorf("%s is taken", method.Alg())
		}
	}
	if !good(made(t, sample(), site)) {
		t.Error("a good one is not")
	}
	c.Audience = jwt.ClaimStrings{"door"}
	if s, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, &c).SignedString(site); err != nil || good(s) {
		t.Errorf("a ticket for something else: %v", err)
	}
	c.Audience, c.ExpiresAt = jwt.ClaimStrings{audience}, nil
	if s, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, &c).SignedString(site); err != nil || good(s) {
		t.Errorf("a ticket for ever: %v", err)
	}
}

func good(ticket string) bool {
	_, err := Check(joinOf(ticket), public(site), now)
	return err == nil
}

func TestMakeRefuses(t *testing.T) {
	for what, change := range map[string]func(*Ticket){
		"user": func(k *Ticket) { k.User = "" }, "job": func(k *Ticket) { k.Job = "" }, "ranks": func(k *Ticket) { k.Ranks = 0 },
		"key": func(k *Ticket) { k.Key = nil }, "expiry": func(k *Ticket) { k.Expires = now },
	} {
		k := sample()
		change(&k)
		if _, err := Make(k, site, now); err == nil {
			t.Errorf("without %s", what)
		}
	}
}

// FuzzParse checks that no ticket without the site's signature is accepted.
func FuzzParse(f *testing.F) {
	good := made(f, sample(), site)
	f.Add(good)
	f.Add(good[:50])
	f.Add("e30.e30.")
	f.Fuzz(func(t *testing.T, s string) {
		if k, err := Parse(s, public(site), now); err == nil && s != good {
			t.Errorf("%q says %+v", s, k)
		}
	})
}

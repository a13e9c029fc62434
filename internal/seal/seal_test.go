package seal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

func party(t testing.TB, j *Job, rank uint32, instance uint64) *Party {
	t.Helper()
	p, err := j.NewParty([PublicLen]byte{1, byte(rank), byte(instance)}, rank, instance)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pair(t testing.TB) (*Sealer, *Opener) {
	t.Helper()
	j := NewJob("job", "secret")
	a, b := party(t, j, 0, 7), party(t, j, 1, 8)
	s, _, err := a.Pair(&b.Member)
	if err != nil {
		t.Fatal(err)
	}
	_, o, err := b.Pair(&a.Member)
	if err != nil {
		t.Fatal(err)
	}
	return s, o
}

const headLen = 32

func sealed(t testing.TB, s *Sealer, plain string) []byte {
	t.Helper()
	f, err := s.Seal(nil, bytes.Repeat([]byte{0x5a}, headLen), []byte(plain), Small)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestEndsHaveEqualKeys checks that both ends have the same keys, and different ones for each
// direction.
func TestEndsHaveEqualKeys(t *testing.T) {
	j := NewJob("job", "secret")
	a, b := party(t, j, 0, 7), party(t, j, 1, 8)
	as, ao, err := a.Pair(&b.Member)
	if err != nil {
		t.Fatal(err)
	}
	bs, bo, err := b.Pair(&a.Member)
	if err != nil {
		t.Fatal(err)
	}
	var aw, bw Window
	for range 3 {
		got, err := bo.Open(sealed(t, as, "there"), headLen, Small, &bw)
		if err != nil || string(got) != "there" {
			t.Fatalf("opened %q, %v", got, err)
		}
		if got, err = ao.Open(sealed(t, bs, "back"), headLen, Small, &aw); err != nil || string(got) != "back" {
			t.Fatalf("opened %q, %v", got, err)
		}
	}
	if _, err := ao.Open(sealed(t, as, "mirrored"), headLen, Small, &aw); err == nil {
		t.Error("a frame opens at the end that sealed it")
	}
}

// TestKeysDependOnAllInputs checks that the keys depend on each of their inputs.
func TestKeysDependOnAllInputs(t *testing.T) {
	j := NewJob("job", "secret")
	a, b := party(t, j, 0, 7), party(t, j, 1, 8)
	s, _, err := a.Pair(&b.Member)
	if err != nil {
		t.Fatal(err)
	}
	again := func(j *Job, rank uint32, instance uint64) *Party {
		p := party(t, j, rank, instance)
		p.private, p.Public = b.private, b.Public // so that only the other fields differ
		p.Proof = j.Prove(&p.Member)
		return p
	}
	for what, p := range map[string]*Party{"job": again(NewJob("job2", "secret"), 1, 8),
		"secret": again(NewJob("job", "Secret"), 1, 8),
		"rank":   again(j, 2, 8), "instance": again(j, 1, 9)} {
		m := a.Member
		m.Proof = p.job.Prove(&m)
		_, o, err := p.Pair(&m)
		if err != nil {
			t.Fatal(what, err)
		}
		if _, err := o.Open(sealed(t, s, "x"), headLen, Small, new(Window)); err == nil {
			t.Errorf("another %s gives the same key", what)
		}
	}
}

// TestUnprovenKeyIsRefused checks that a key without a valid Proof, or of another rank, is refused.
func TestUnprovenKeyIsRefused(t *testing.T) {
	j := NewJob("job", "secret")
	a, b := party(t, j, 0, 7), party(t, j, 1, 8)
	forged := map[string]func(m *Member){
		"public":   func(m *Member) { m.Public[3] ^= 1 },
		"rank":     func(m *Member) { m.Rank = 2 },
		"instance": func(m *Member) { m.Instance++ },
		"proof":    func(m *Member) { m.Proof[15] ^= 1 },
		"own key":  func(m *Member) { *m = a.Member },
		"another secret": func(m *Member) {
			m.Proof = NewJob("job", "other").Prove(m)
		},
		"low order": func(m *Member) { m.Public = [PublicLen]byte{}; m.Proof = j.Prove(m) },
	}
	for what, forge := range forged {
		m := b.Member
		forge(&m)
		if _, _, err := a.Pair(&m); err == nil {
			t.Errorf("%s: a forged member is taken", what)
		}
	}
	if _, _, err := a.Pair(&b.Member); err != nil {
		t.Error(err)
	}
}

// TestWord checks that an Abort is authenticated for one rank, one instance and one text.
func TestWord(t *testing.T) {
	j := NewJob("job", "secret")
	w := j.Word(3, 9, []byte("stop"))
	if !NewJob("job", "secret").VerifyWord(3, 9, []byte("stop"), w) {
		t.Error("a word is not known again")
	}
	if j.VerifyWord(4, 9, []byte("stop"), w) || j.VerifyWord(3, 8, []byte("stop"), w) || j.VerifyWord(3, 9, []byte("go"), w) ||
		NewJob("job", "x").VerifyWord(3, 9, []byte("stop"), w) || NewJob("j", "secret").VerifyWord(3, 9, []byte("stop"), w) {
		t.Error("a word is another's, too")
	}
}

// TestLink checks that rank and forwarder, and two forwarders, have the same keys for each
// direction, and that another link between them has others.
func TestLink(t *testing.T) {
	p := party(t, NewJob("job", "secret"), 0, 7)
	f, err := NewForwarder([PublicLen]byte{9})
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewForwarder([PublicLen]byte{10})
	if err != nil {
		t.Fatal(err)
	}
	type link func(nonce [NonceLen]byte) (*Channel, error)
	for _, l := range []struct{ dials, listens link }{
		{func(n [NonceLen]byte) (*Channel, error) { return p.Link(f.Public, n) },
			func(n [NonceLen]byte) (*Channel, error) { return f.Link(p.Public, n) }},
		{func(n [NonceLen]byte) (*Channel, error) { return g.Dialled(f.Public, n) },
			func(n [NonceLen]byte) (*Channel, error) { return f.Link(g.Public, n) }},
	} {
		d, err := l.dials([NonceLen]byte{1})
		if err != nil {
			t.Fatal(err)
		}
		h, err := l.listens([NonceLen]byte{1})
		if err != nil {
			t.Fatal(err)
		}
		other, err := l.listens([NonceLen]byte{2})
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range []struct{ from, to *Channel }{{d, h}, {h, d}} {
			frame := func() []byte {
				f, err := way.from.Seal(nil, make([]byte, headLen), []byte("control"))
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			first, second := frame(), frame()
			if got, err := way.to.Open(bytes.Clone(first), headLen); err != nil || string(got) != "control" {
				t.Errorf("%q, %v", got, err)
			}
			if _, err := way.to.Open(bytes.Clone(first), headLen); err != ErrRepeated {
				t.Errorf("a repeated frame: %v", err)
			}
			if _, err := way.from.Open(bytes.Clone(second), headLen); err != ErrForged {
				t.Errorf("both directions have one key: %v", err)
			}
			if _, err := other.Open(bytes.Clone(second), headLen); err != ErrForged {
				t.Errorf("two links have one key: %v", err)
			}
		}
	}
	if _, err := f.Link([PublicLen]byte{}, [NonceLen]byte{}); err == nil {
		t.Error("a key of low order is taken")
	}
}

// TestChangedFrameIsDetected checks that any changed bit and any changed length is detected.
func TestChangedFrameIsDetected(t *testing.T) {
	s, o := pair(t)
	whole := sealed(t, s, "hello, world")
	var w Window
	for i := range len(whole) * 8 {
		f := bytes.Clone(whole)
		f[i/8] ^= 1 << (i % 8)
		if plain, err := o.Open(f, headLen, Small, &w); err != ErrForged || plain != nil {
			t.Fatalf("bit %d: %q, %v", i, plain, err)
		}
	}
	for n := range whole {
		if _, err := o.Open(bytes.Clone(whole[:n]), headLen, Small, &w); err != ErrForged {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	if _, err := o.Open(bytes.Clone(whole), headLen, Bulk, &w); err != ErrForged {
		t.Errorf("of another class: %v", err)
	}
	if _, err := o.Open(whole, headLen, Small, &w); err != nil {
		t.Error(err)
	}
}

// TestNonces checks that a text which is sealed again has another ciphertext, also in another
// class, and that a key expires after a number of uses.
func TestNonces(t *testing.T) {
	s, o := pair(t)
	seen := map[string]bool{}
	var w [classes]Window
	for range 100 {
		for class := range classes {
			f, err := s.Seal(nil, make([]byte, headLen), []byte("the same"), class)
			if err != nil {
				t.Fatal(err)
			}
			c := string(f[headLen : len(f)-8])
			if seen[c] {
				t.Fatal("two transmissions are equal")
			}
			seen[c] = true
			if _, err := o.Open(bytes.Clone(f), headLen, class, &w[class]); err != nil {
				t.Fatal(err)
			}
			if plain, err := o.Open(f, headLen, class, &w[class]); err != ErrRepeated || plain != nil {
				t.Fatalf("repeated: %q, %v", plain, err)
			}
		}
	}
	s.numbers[Bulk] = lastNumber
	if _, err := s.Seal(nil, nil, nil, Bulk); err == nil {
		t.Error("a key is never used up")
	}
}

// TestWindow compares a Window with a list of all numbers.
func TestWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var w Window
		seen, last := map[uint64]bool{}, uint64(0)
		for range 20_000 {
			n := last + 1
			switch rng.IntN(4) {
			case 0:
				n += rng.Uint64N(3)
			case 1:
				n = max(1, n-min(n-1, rng.Uint64N(windowLen+20)))
			case 2:
				if rng.IntN(50) == 0 {
					n += rng.Uint64N(3 * windowLen)
				}
			}
			want := !seen[n] && n+windowLen > last
			if got := w.take(n); got != want {
				t.Fatalf("number %d after %d: %v", n, last, got)
			}
			if want {
				seen[n] = true
			}
			last = max(last, n)
		}
	}
}

// TestInPlace checks that sealing and opening in one buffer gives the same result, and allocates
// nothing.
func TestInPlace(t *testing.T) {
	s, o := pair(t)
	head := bytes.Repeat([]byte{7}, headLen)
	buf := make([]byte, 0, headLen+100+Overhead)
	plain := bytes.Repeat([]byte("0123456789"), 10)
	var w Window
	round := func() {
		b := append(append(buf[:0], head...), plain...)
		f, err := s.Seal(b[:0], b[:headLen], b[headLen:], Bulk)
		if err != nil || &f[0] != &b[0] || len(f) != headLen+len(plain)+Overhead {
			t.Fatalf("sealed %d bytes, %v", len(f), err)
		}
		got, err := o.Open(f, headLen, Bulk, &w)
		if err != nil || !bytes.Equal(got, plain) || !bytes.Equal(f[:headLen], head) {
			t.Fatalf("opened %q, %v", got, err)
		}
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzOpen checks that no forged frame opens, and that none crashes.
func FuzzOpen(f *testing.F) {
	s, o := pair(f)
	f.Add(sealed(f, s, ""), headLen)
	f.Add(sealed(f, s, "payload"), headLen-1)
	f.Add([]byte{}, 0)
	f.Add(make([]byte, headLen+Overhead), headLen)
	good := sealed(f, s, "payload")
	f.Add(good, headLen+1)
	f.Fuzz(func(t *testing.T, frame []byte, head int) {
		before := bytes.Clone(frame)
		plain, err := o.Open(frame, head, Small, new(Window))
		if err == nil && (head != headLen || len(plain)+headLen+Overhead != len(frame)) {
			t.Fatalf("%x opens as %q", before, plain)
		}
	})
}

// FuzzMember checks that no forged member is vouched for.
func FuzzMember(f *testing.F) {
	j := NewJob("job", "secret")
	a, b := party(f, j, 0, 7), party(f, j, 1, 8)
	f.Add(b.Rank, b.Instance, b.Public[:], b.Proof[:])
	f.Add(uint32(2), b.Instance, b.Public[:], b.Proof[:])
	f.Add(uint32(0), uint64(0), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, rank uint32, instance uint64, public, proof []byte) {
		m := Member{Rank: rank, Instance: instance}
		copy(m.Public[:], public)
		copy(m.Proof[:], proof)
		if _, _, err := a.Pair(&m); err == nil && m != b.Member {
			t.Fatalf("%+v is vouched for", m)
		}
	})
}

// BenchmarkSeal measures the cost of a frame, and of a pair's first one.

func BenchmarkSeal(b *testing.B) {
	for _, n := range []int{40, 4 << 10, 128 << 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _ := pair(b)
			buf := make([]byte, headLen+n, headLen+n+Overhead)
			b.SetBytes(int64(n))
			for b.Loop() {
				_, _ = s.Seal(buf[:0], buf[:headLen], buf[headLen:], Bulk)
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{40, 4 << 10, 128 << 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, o := pair(b)
			f, _ := s.Seal(nil, make([]byte, headLen), make([]byte, n), Bulk)
			work := make([]byte, len(f))
			b.SetBytes(int64(n))
			for b.Loop() {
				copy(work, f)
				if _, err := o.Open(work, headLen, Bulk, new(Window)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPair(b *testing.B) {
	j := NewJob("job", "secret")
	x, y := party(b, j, 0, 7), party(b, j, 1, 8)
	for b.Loop() {
		if _, _, err := x.Pair(&y.Member); err != nil {
			b.Fatal(err)
		}
	}
}

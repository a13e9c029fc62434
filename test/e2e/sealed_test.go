package e2e

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// The messages of test/programs/c/secret.c.
const (
	secretTag  = 0x5ea1ed
	secretText = "attack at dawn! "
)

// secretProgram compiles the program for both libraries and returns its path, with {mpi} in it, and
// its native output on two ranks.
func secretProgram(b *Bed, rounds string) (path string, native Result) {
	const source = "test/programs/c/secret.c"
	b.Compile(MPICH, source)
	prog := b.Compile(OpenMPI, source)
	return strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1), b.OK(b.Native(OpenMPI, 2, prog, rounds))
}

// matching returns the part of a frame's envelope that determines the receive: communicator, tag
// and kind. It returns nil for a frame without envelope, or one that cannot be read.
func matching(h wire.Header, frame []byte) []byte {
	if h.Flags&wire.FlagSealed != 0 || h.Type != wire.TypeEager && h.Type != wire.TypeRTS {
		return nil
	}
	e, err := wire.ParseEnvelope(frame[wire.HeaderLen:])
	if err != nil || e.Tag != secretTag {
		return nil
	}
	return bytes.Clone(frame[wire.HeaderLen:][:16])
}

// TestSealedCapture checks that an eavesdropper between ranks and forwarder finds the program's
// data, tags and communicators in a job that is not sealed, and none of them in a sealed one.
func TestSealedCapture(t *testing.T) {
	b := New(t)
	prog, native := secretProgram(b, "3")
	f := b.StartForwarder()
	var envelopes [][]byte // those of the unsealed job; both jobs have the same contexts and tags
	for _, level := range []string{"checked", "sealed"} {
		m := tamper(t, f.Addr, func(_ bool, h wire.Header, frame []byte) [][]byte {
			if e := matching(h, frame); e != nil && level == "checked" {
				envelopes = append(envelopes, e)
			}
			return [][]byte{frame}
		})
		b.Same(native, b.OK(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)},
			Flags: []string{"--zipper", m.Addr, "--level", level}}, prog, "3")), nil)
		seen := m.Seen()
		if len(envelopes) == 0 || len(seen) < 20_000_000 {
			t.Fatalf("%s: %d envelopes, %d bytes went by", level, len(envelopes), len(seen))
		}
		plain := level == "checked"
		if bytes.Contains(seen, []byte(secretText)) != plain {
			t.Errorf("level %s: the payload can be read: %v", level, !plain)
		}
		for _, e := range envelopes {
			if bytes.Contains(seen, e) != plain {
				t.Errorf("level %s: communicator and tag can be read: %v (%x)", level, !plain, e)
				break
			}
		}
		tag := binary.LittleEndian.AppendUint64(nil, secretTag) // and kind 0
		if bytes.Contains(seen, tag) != plain {
			t.Errorf("level %s: the tag can be read: %v", level, !plain)
		}
	}
}

// TestSealedTampering checks that changes of a sealed job's frames on their way are detected by the
// ranks and never delivered, and that the job goes on.
func TestSealedTampering(t *testing.T) {
	const forged, repeated, plain = "differs from the frame that its sender sealed", "it was received before", "it is not sealed"
	again := func(frame []byte, change func(h *wire.Header)) []byte {
		h, err := wire.ParseHeader(frame)
		if err != nil {
			t.Fatal(err)
		}
		change(&h)
		return append(h.Append(nil), frame[wire.HeaderLen:]...)
	}
	flipped := func(frame []byte) [][]byte {
		frame = bytes.Clone(frame)
		frame[wire.HeaderLen+len(frame)/8] ^= 1
		return [][]byte{frame}
	}
	for _, c := range []struct {
		name string
		typ  wire.Type // typ is that of the frame that is changed or replaced.
		do   func(frame []byte) [][]byte
		want string
		// up is the direction from the rank to the forwarder, which detects the change; false: the
		// other direction.
		up bool
	}{
		{"change a segment", wire.TypeData, flipped, forged, false},
		{"change a message", wire.TypeEager, flipped, forged, false},
		{"change an acknowledgement", wire.TypeEager, func(frame []byte) [][]byte {
			return [][]byte{again(frame, func(h *wire.Header) { h.Ack++ })}
		}, forged, false},
		{"repeat a message", wire.TypeEager, func(frame []byte) [][]byte { return [][]byte{frame, frame} }, repeated, false},
		{"repeat a segment", wire.TypeData, func(frame []byte) [][]byte { return [][]byte{frame, frame} }, repeated, false},
		{"invent a message", wire.TypeEager, func(frame []byte) [][]byte {
			h, err := wire.ParseHeader(frame)
			if err != nil {
				t.Fatal(err)
			}
			e := wire.Envelope{Tag: secretTag, Size: 0}
			h.Flags = 0
			return [][]byte{wire.AppendFrame(nil, h, &e), frame}
		}, plain, false},
		{"send an Abort", wire.TypeEager, func(frame []byte) [][]byte {
			return [][]byte{wire.AppendFrame(nil, wire.Control(wire.TypeAbort),
				&wire.Abort{Code: 77, Rank: 1, Reason: "gotcha", By: 1}), frame}
		}, plain, false},
		{"send the forwarder an Abort", wire.TypeEager, func(frame []byte) [][]byte {
			return [][]byte{wire.AppendFrame(nil, wire.Control(wire.TypeAbort),
				&wire.Abort{Code: 77, Rank: 0, Reason: "gotcha", By: 0}), frame}
		}, plain, true},
		{"say Bye", wire.TypeEager, func(frame []byte) [][]byte {
			return [][]byte{wire.AppendFrame(nil, wire.Control(wire.TypeBye), nil), frame}
		}, plain, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := New(t)
			prog, native := secretProgram(b, "6")
			f := b.StartForwarder()
			n := 0
			m := tamper(t, f.Addr, func(toRank bool, h wire.Header, frame []byte) [][]byte {
				if h.Type != c.typ || toRank == c.up {
					return [][]byte{frame}
				}
				if n++; n != 5 {
					return [][]byte{frame}
				}
				return c.do(frame)
			})
			r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)},
				Flags: []string{"--zipper", "a@" + m.Addr + "+b@" + f.Addr, "--level", "sealed"}}, prog, "6")
			if n < 5 {
				t.Fatalf("only %d frames went by", n)
			}
			log := r.Stderr
			if c.up {
				log = f.Stderr()
			}
			if !strings.Contains(log, c.want) {
				t.Errorf("no process has noticed that %q:\n%v", c.want, r)
			}
			if strings.Contains(r.Stderr, "gotcha") || strings.Contains(r.Stderr, "secret.c:") {
				t.Errorf("it was delivered:\n%v", r)
			}
			b.Same(native, b.OK(r), nil) // the link was re-established
		})
	}
}

// TestSealedWrongSecret checks that two halves with different secrets do not become a job, and
// report why.
func TestSealedWrongSecret(t *testing.T) {
	b := New(t)
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	f := b.StartForwarder()
	id := JobID(t)
	join := func(cluster, secret string) *Proc {
		return b.Start(nil, []string{"ZIPPER_SECRET=" + SecretOf(secret)}, b.Zipper, "join", "--job", id, "--cluster",
			cluster,
			"--layout", "a=1,b=1", "--zipper", f.Addr, "--timeout", "10s", "--level", "sealed", "--mpi", OpenMPI, "--",
			prog, "finish")
	}
	first, second := join("a", "right"), join("b", "other")
	for _, p := range []*Proc{first, second} {
		if r := p.Wait(); r.Status == 0 {
			t.Errorf("a half with another secret joined:\n%v", r)
		} else {
			b.Fails(r, r.Status, "refused", "secret")
		}
	}
	b.NothingLeft(id)
}

// TestSealedWindows checks that one-sided operations of a sealed job have their native results.
func TestSealedWindows(t *testing.T) {
	b := New(t)
	b.Limit *= 4 // the forwarder serves several jobs
	f := b.StartForwarder("--level", "sealed")
	windows(b, []string{"--zipper", f.Addr, "--level", "sealed"}, some[1:])
}

// TestSealedNatively checks that programs print their native output over a sealed job: through one
// and two forwarders, with direct links, and over several hops.
func TestSealedNatively(t *testing.T) {
	b := New(t)
	const source = "test/programs/c/random.c"
	b.Compile(MPICH, source)
	path := strings.Replace(b.Compile(OpenMPI, source), "/"+OpenMPI+"/", "/{mpi}/", 1)
	f, g := b.StartForwarder("--level", "sealed"), b.StartForwarder("--level", "sealed")
	native := b.OK(b.Native(OpenMPI, 3, strings.ReplaceAll(path, "{mpi}", OpenMPI), "11", "150"))
	two := []Cluster{A(2, OpenMPI), B(1, MPICH)}
	for _, c := range []struct {
		name     string
		clusters []Cluster
		flags    []string
	}{
		{"one forwarder", two, []string{"--zipper", f.Addr}},
		{"two forwarders", two, []string{"--zipper", f.Addr, "--zipper", g.Addr}},
		{"direct", []Cluster{{Name: "a", Ranks: 2, MPI: OpenMPI + ",dual=127.0.0.1"}, B(1, MPICH)}, []string{"--zipper", f.Addr}},
		{"two hops", []Cluster{A(1, OpenMPI), B(1, OpenMPI), C(1, MPICH)}, hopFlags(f, g)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := *b
			b.T = t
			b.Same(native, b.OK(b.Zipped(Job{Clusters: c.clusters, Flags: append(c.flags, "--level", "sealed")}, path,
				"11", "150")), nil)
		})
	}
	if !strings.Contains(f.Stderr(), "job runs") {
		t.Error("the forwarder has served no rank")
	}
	begin := time.Now()
	r := b.Zipped(Job{Clusters: two, Flags: []string{"--zipper", f.Addr, "--level", "checked"}, Timeout: "20s"}, path,
		"11", "1")
	b.Fails(r, r.Status, "the job has level checked, this forwarder serves sealed or stronger")
	if r.Status == 0 || time.Since(begin) > 20*time.Second {
		t.Errorf("a weaker job: %v", r)
	}
}

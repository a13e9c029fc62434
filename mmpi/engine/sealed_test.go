package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
)

// sealedJob has the keys of a sealed job of so many ranks, all of which have a link to one
// forwarder.
type sealedJob struct {
	t         testing.TB
	forwarder *seal.Forwarder
	parties   []*seal.Party
	members   []wire.SealKey

	mu    sync.Mutex
	links map[uint32]*seal.Channel // the forwarder's ends, by rank
}

func newSealedJob(t testing.TB, id string, ranks int) *sealedJob {
	s := &sealedJob{t: t, links: map[uint32]*seal.Channel{}}
	var err error
	if s.forwarder, err = seal.NewForwarder([seal.PublicLen]byte{77}); err != nil {
		t.Fatal(err)
	}
	j := seal.NewJob(id, "secret")
	for v := range ranks {
		p, err := j.NewParty([seal.PublicLen]byte{1, byte(v), byte(len(id))}, uint32(v), uint64(v)+100)
		if err != nil {
			t.Fatal(err)
		}
		s.parties = append(s.parties, p)
		s.members = append(s.members, wire.SealKey{Instance: p.Instance, Key: p.Public, Proof: p.Proof})
	}
	return s
}

// keys returns the keys of a rank's engine.
func (s *sealedJob) keys(rank int) *sealing.Keys {
	p := s.parties[rank]
	return &sealing.Keys{Party: p, Members: s.members, Channel: func(transport.Link) *seal.Channel {
		s.mu.Lock()
		defer s.mu.Unlock()
		c, err := p.Link(s.forwarder.Public, [seal.NonceLen]byte{})
		if err != nil {
			s.t.Error(err)
		}
		if s.links[p.Rank], err = s.forwarder.Link(p.Public, [seal.NonceLen]byte{}); err != nil {
			s.t.Error(err)
		}
		return c
	}}
}

func (s *sealedJob) change(rank int, cfg *Config) {
	cfg.Level, cfg.Seal = wire.LevelSealed, s.keys(rank)
}

// facing changes a configuration as change does, for two processes at the ends of one link, of
// which the second has the forwarder's keys.
func (s *sealedJob) facing(rank int, cfg *Config) {
	s.change(rank, cfg)
	if rank == 1 {
		cfg.Seal.Channel = func(transport.Link) *seal.Channel { return s.links[0] }
	}
}

// levels returns all levels, each with the change of configuration that gives it to a job of two
// ranks at the ends of one link.
func levels(t testing.TB) iter.Seq2[wire.Level, func(rank int, cfg *Config)] {
	return func(yield func(wire.Level, func(int, *Config)) bool) {
		for l := wire.LevelPlain; l <= wire.LevelSealed; l++ {
			change := func(_ int, cfg *Config) { cfg.Level = l }
			if l == wire.LevelSealed {
				change = newSealedJob(t, "job", 2).facing
			}
			if !yield(l, change) {
				return
			}
		}
	}
}

// The secret tag and context of messages, whose bytes must not appear in frames.
const (
	secretTag     = 0x000bcde5
	secretContext = 0x1234567890abcdef
)

var secretText = []byte("attack at dawn! ")

// sendAll sends messages of several sizes from rank 0 to 1 and back. It returns the bytes received
// and the receives' cells.
func sendAll(t *testing.T, f *fabric, sizes ...int) (got [][]byte, cells []*Cell) {
	comms := f.world(secretContext)
	for i, n := range sizes {
		from := i % 2
		in, send, recv := make([]byte, n), new(Cell), new(Cell)
		if err := f.engines[1-from].Irecv(comms[1-from], KindP2P, in, from, secretTag, recv); err != nil {
			t.Fatal(err)
		}
		text := bytes.Repeat(secretText, n/len(secretText)+1)[:n]
		if err := f.engines[from].Isend(comms[from], KindP2P, text, 1-from, secretTag, i%3 == 0, send); err != nil {
			t.Fatal(err)
		}
		got, cells = append(got, in), append(cells, recv)
	}
	for range 60 {
		for rank, e := range f.engines {
			e.Progress(0)
			f.relay(rank, 0)
		}
	}
	return got, cells
}

var sealedSizes = []int{0, 1, 100, 100, 3000, 40_000, 200_000, 1_000_000}

// TestSealedFramesHideTheirContents checks that messages of all sizes arrive, and that the bytes
// between the ranks contain neither payload nor tag nor context.
func TestSealedFramesHideTheirContents(t *testing.T) {
	f := newFabric(t, []int{1, 1}, Limits{}, newSealedJob(t, "job", 2).change)
	var crossed []byte
	frames := map[wire.Type]int{}
	f.edit = func(h *wire.Header, frame []byte) [][]byte {
		crossed = append(crossed, frame...)
		frames[h.Type]++
		if h.Flags&wire.FlagSealed == 0 {
			t.Errorf("%v frame is not sealed", h.Type)
		}
		return [][]byte{frame}
	}
	got, cells := sendAll(t, f, sealedSizes...)
	for i, n := range sealedSizes {
		if want := bytes.Repeat(secretText, n/len(secretText)+1)[:n]; !cells[i].Done() || cells[i].Error != 0 ||
			!bytes.Equal(got[i], want) {
			t.Errorf("message %d of %d bytes: done %v, error %d, %.20q", i, n, cells[i].Done(), cells[i].Error, got[i])
		}
	}
	for _, typ := range []wire.Type{wire.TypeEager, wire.TypeRTS, wire.TypeCTS, wire.TypeData, wire.TypeFin,
		wire.TypeMatched} {
		if frames[typ] == 0 {
			t.Errorf("no %v frame has crossed", typ)
		}
	}
	for what, p := range map[string][]byte{"payload": secretText, "tag": binary.LittleEndian.AppendUint32(nil,
		secretTag),
		"context": binary.LittleEndian.AppendUint64(nil, secretContext)} {
		if bytes.Contains(crossed, p) {
			t.Errorf("the %s can be read on the way", what)
		}
	}
	if f.natives[0].failed+f.natives[1].failed != "" {
		t.Error(f.natives[0].failed, f.natives[1].failed)
	}
}

// TestSealedForgeriesAreDetected checks that a rank detects frames that a forwarder changes,
// repeats or forges, and that nothing of them reaches the program.
func TestSealedForgeriesAreDetected(t *testing.T) {
	headerAgain := func(frame []byte, change func(h *wire.Header)) []byte {
		h, err := wire.ParseHeader(frame)
		if err != nil {
			t.Fatal(err)
		}
		change(&h)
		return append(h.Append(nil), frame[wire.HeaderLen:]...)
	}
	flip := func(at func(frame []byte) int) func(f *fabric, frame []byte) [][]byte {
		return func(_ *fabric, frame []byte) [][]byte {
			frame = bytes.Clone(frame)
			frame[at(frame)] ^= 4
			return [][]byte{frame}
		}
	}
	rehead := func(change func(h *wire.Header)) func(f *fabric, frame []byte) [][]byte {
		return func(_ *fabric, frame []byte) [][]byte { return [][]byte{headerAgain(frame, change)} }
	}
	other := newSealedJob(t, "another job", 2)
	forgeries := map[string]struct {
		forge func(f *fabric, frame []byte) [][]byte
		want  string
	}{
		"body":     {flip(func([]byte) int { return wire.HeaderLen }), "sealed"},
		"tag":      {flip(func(f []byte) int { return len(f) - 9 }), "sealed"},
		"number":   {flip(func(f []byte) int { return len(f) - 8 }), "sealed"},
		"ack":      {rehead(func(h *wire.Header) { h.Ack++ }), "sealed"},
		"sequence": {rehead(func(h *wire.Header) { h.Seq++ }), "sealed"},
		"epoch":    {rehead(func(h *wire.Header) { h.Epoch++ }), "sealed"},
		"sync":     {rehead(func(h *wire.Header) { h.Flags ^= wire.FlagSync }), "sealed"},
		"repeated": {func(_ *fabric, frame []byte) [][]byte { return [][]byte{frame, bytes.Clone(frame)} }, "it was received before"},
		"reflected to its sender": {func(f *fabric, frame []byte) [][]byte { // back to its sender
			back := headerAgain(frame, func(h *wire.Header) { h.Src, h.Dst = h.Dst, h.Src })
			f.down[binary.LittleEndian.Uint32(back[12:])] = append(f.down[binary.LittleEndian.Uint32(back[12:])],
				back...)
			return [][]byte{frame}
		}, "sealed"},
		"forged, plain": {func(f *fabric, frame []byte) [][]byte {
			h, _ := wire.ParseHeader(frame)
			a := wire.AppendFrame(nil, wire.Header{Type: wire.TypeAck, Epoch: 1, Src: h.Src, Dst: h.Dst}, nil)
			return [][]byte{a, frame}
		}, "not sealed"},
		"forged, of another job": {func(f *fabric, frame []byte) [][]byte {
			h, _ := wire.ParseHeader(frame)
			p, err := other.keys(int(h.Src)).Pair(int(h.Dst), 1)
			if err != nil {
				t.Fatal(err)
			}
			a, err := p.Seal(nil, wire.AppendFrame(nil, wire.Header{Type: wire.TypeAck, Epoch: 1, Src: h.Src,
				Dst: h.Dst}, nil))
			if err != nil {
				t.Fatal(err)
			}
			return [][]byte{a, frame}
		}, "sealed"},
	}
	for what, c := range forgeries {
		for _, typ := range []wire.Type{wire.TypeEager, wire.TypeRTS, wire.TypeCTS, wire.TypeData, wire.TypeFin} {
			t.Run(fmt.Sprint(what, " ", typ), func(t *testing.T) {
				f := newFabric(t, []int{1, 1}, Limits{}, newSealedJob(t, "job", 2).change)
				forged := false
				f.edit = func(h *wire.Header, frame []byte) [][]byte {
					if h.Type != typ || forged {
						return [][]byte{frame}
					}
					forged = true
					return c.forge(f, frame)
				}
				got, cells := sendAll(t, f, sealedSizes...)
				if failed := f.natives[0].failed + f.natives[1].failed; !forged || !strings.Contains(failed, c.want) {
					t.Errorf("ends with %q, want %q", failed, c.want)
				}
				for i, n := range sealedSizes {
					if want := bytes.Repeat(secretText, n/len(secretText)+1)[:n]; cells[i].Done() &&
						cells[i].Error == 0 && !bytes.Equal(got[i], want) {
						t.Errorf("message %d is delivered wrong", i)
					}
				}
			})
		}
	}
}

// TestForeignKeyEndsSealedJob checks that a key that the job's secret does not prove ends the job
// before anything is sealed with it.
func TestForeignKeyEndsSealedJob(t *testing.T) {
	s := newSealedJob(t, "job", 2)
	f := newFabric(t, []int{1, 1}, Limits{}, s.change)
	forged := bytes.Clone(s.members[1].Key[:])
	forged[0] ^= 1
	copy(s.members[1].Key[:], forged)
	f.edit = func(h *wire.Header, frame []byte) [][]byte {
		if h.Src == 0 {
			t.Errorf("%v frame is sealed with a stranger's key", h.Type)
		}
		return nil
	}
	sendAll(t, f, 100)
	if !strings.Contains(f.natives[0].failed, "rank 1: the key of the other end was not made") {
		t.Errorf("fails with %q", f.natives[0].failed)
	}
}

// TestSealedAbortNeedsSignature checks that an Abort counts as a rank's only if that rank has
// signed it, and that an Abort that is not sealed with the link's keys is rejected.
func TestSealedAbortNeedsSignature(t *testing.T) {
	abort := wire.Abort{Code: 42, Rank: 0, Reason: "MPI_Abort", By: 0}
	signed := func(s *sealedJob) wire.Abort {
		a := abort
		s.keys(0).Sign(&a)
		return a
	}
	control := func(s *sealedJob, a wire.Abort) []byte {
		l := s.links[1]
		frame := wire.AppendFrame(nil, wire.Control(wire.TypeAbort), &a)
		h, _ := wire.ParseHeader(frame)
		h.Flags, h.Length, h.BodySum = wire.FlagSealed, h.Length+wire.SealLen, 0
		b, err := l.Seal(nil, h.Append(nil), frame[wire.HeaderLen:])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for what, c := range map[string]struct {
		frame func(s *sealedJob) []byte
		code  int
		want  string
		never string
	}{
		"a rank's": {func(s *sealedJob) []byte { return control(s, signed(s)) }, 42,
			"job ended with exit status 42: MPI_Abort, by virtual rank 0 (rank 0 of cluster a) with code 42",
			"forwarder"},
		"the forwarder's": {func(s *sealedJob) []byte {
			return control(s, wire.Abort{Code: 1, Rank: wire.Nobody, Reason: "shutting down", By: wire.Nobody})
		}, 1, "job ended by the forwarder: shutting down", "rank 0"},
		"in a rank's name": {func(s *sealedJob) []byte {
			a := signed(s)
			a.Code = 0
			return control(s, a)
		}, 0, "in the name of rank 0", "MPI_Abort"},
		"plain frame of an outsider": {func(s *sealedJob) []byte {
			return wire.AppendFrame(nil, wire.Control(wire.TypeAbort), &abort)
		}, 1, "not sealed", "MPI_Abort"},
		"from another link": {func(s *sealedJob) []byte {
			o := newSealedJob(t, "another", 2)
			o.keys(1).Channel(nil)
			return control(o, abort)
		}, 1, "sealed", "MPI_Abort"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSealedJob(t, "job", 2)
			f := newFabric(t, []int{1, 1}, Limits{}, s.change)
			f.down[1] = append(f.down[1], c.frame(s)...)
			f.engines[1].Progress(0)
			got := f.natives[1]
			if got.code != c.code || !strings.Contains(got.failed, c.want) || strings.Contains(got.failed, c.never) {
				t.Errorf("code %d, %q; want %d, %q", got.code, got.failed, c.code, c.want)
			}
		})
	}
}

// FuzzSealed checks that a rank of a sealed job handles no frame that is not sealed but Ping, with
// any bytes from the link.
func FuzzSealed(f *testing.F) {
	h := wire.Header{Type: wire.TypeEager, Flags: wire.FlagSealed, Epoch: 1, Length: wire.EnvelopeLen + wire.SealLen,
		Src: 0, Dst: 1, Seq: 1}
	f.Add(h.Append(nil), make([]byte, h.Length))
	h.Type, h.Length, h.Seq = wire.TypeData, wire.DataLen+100_000+wire.SealLen, 0
	f.Add(h.Append(nil), make([]byte, 300))
	h.Type, h.Length = wire.TypeAck, wire.SealLen
	f.Add(h.Append(nil), make([]byte, wire.SealLen))
	ping := wire.AppendFrame(nil, wire.Control(wire.TypePing), nil)
	f.Add(ping, []byte{})
	f.Fuzz(func(t *testing.T, head, rest []byte) {
		if len(head) == wire.HeaderLen { // without this the sum is wrong most of the time
			if got, ok := resum(head); ok {
				head = got
			}
		}
		b := newFabric(t, []int{1, 1}, Limits{}, newSealedJob(t, "job", 2).change)
		b.world(1)
		b.down[1] = append(append(b.down[1], head...), rest...)
		b.engines[1].Progress(0)
		for len(b.up[1]) > 0 {
			if h, err := wire.ParseHeader(b.up[1]); err != nil || h.Type != wire.TypePong && h.Type != wire.TypeAbort &&
				h.Type != wire.TypeCount {
				t.Fatalf("answers with %v, %v", h.Type, err)
			} else {
				b.up[1] = b.up[1][wire.HeaderLen+int(h.Length):]
			}
		}
	})
}

// resum returns header bytes with the right sum, and whether they are a header then.
func resum(b []byte) ([]byte, bool) {
	c := bytes.Clone(b)
	binary.LittleEndian.PutUint32(c[wire.HeaderLen-4:], wire.Sum(c[:wire.HeaderLen-4]))
	_, err := wire.ParseHeader(c)
	return c, err == nil
}

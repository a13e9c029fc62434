package forwarder

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

var update = flag.Bool("update", false, "write the transcripts again")

// TestScripts runs the scripts testdata/*.txt: lines that begin with "> " are commands, those that
// begin with # are comments, the others are the commands' output. One thread drives all:
// forwarders' loops are stepped, the clock stands still except for "wait", and operations of
// forwarders that block (dial, ask the kernel) wait for "aside". Commands:
//
//	forwarder NAME [nat] [patience=D] [linger=D] [trunk=N] [far=D] [gathering=N]  starts one; far is
//	                                               the round trip to those that it dials; gathering
//	                                               is how many jobs may gather at once
//	job ID CLUSTER=N… [networks=NAME,…] [rails=N] [patience=D] [on_loss=continue] [quorum=both]
//	                     [NAME:NETWORK,…]…
//	                                               the job that ranks join; NAME:… are its forwarders
//	                                               if it has several hops, with the clusters and
//	                                               networks that each is on; it does not listen on
//	                                               those that are followed by -
//	join RANK[@NAME] [secret=S] [timeout=D] [layout=CLUSTER:N] [lost=CLUSTER]
//	                     [inside] [other]          a process of the job opens a link (a0 is the
//	                                               first of cluster a), or another one in its place
//	eager RANK TO SIZE, data RANK TO SIZE          sends a frame to a virtual rank
//	bye RANK, abort RANK CODE, garbage RANK        says so, or sends what is no frame
//	lost RANK CLUSTER                              says that a cluster is lost
//	ask RANK TO                                    asks for a way to a virtual rank
//	close RANK                                     closes its link
//	stall RANK, read RANK                          does not read any more; does again
//	deaf RANK                                      reads, but does not answer Pings
//	cut NAME NAME [N]                              breaks the link between two forwarders, which the
//	                                               first has dialled: all connections, or one
//	hold NAME NAME N, release NAME NAME N          of what the first sends over one of these nothing
//	                                               arrives; then it does
//	lose NAME NAME N                               the first finds that one of these is dead
//	aside [error] [cut]                            does what was to be done aside, or has it fail, or
//	                                               links that are dialled break before they are used
//	wait D                                         lets time pass
//	reload NAME [undialled]                        has it reload its configuration, without Dial
//	half NAME ID CLUSTER ended|suspended|resumed   a launcher reports on its half
//	ended NAME ID CLUSTER                          the launcher says that a cluster's processes
//	                                               have ended
//	status NAME, stop NAME [resume], kill NAME     resume: jobs that can be resumed are released
//
// RANK is cluster and native rank, with @NAME if it joins more than one forwarder.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{t: t, now: &steppedClock{now: time.Unix(1e9, 0)}, zips: map[string]*scripted{},
				ends: map[string]*processEnd{}}
			t.Cleanup(s.close)
			for line := range strings.SplitSeq(strings.TrimRight(string(want), "\n"), "\n") {
				switch {
				case strings.HasPrefix(line, "> "):
					s.printf("%s", line)
					s.do(strings.Fields(line[2:]))
				case strings.HasPrefix(line, "#"), line == "":
					s.printf("%s", line)
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(s.out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got := s.out.String(); got != string(want) {
				t.Errorf("transcript differs; got:\n%s", got)
			}
		})
	}
}

type script struct {
	t      *testing.T
	now    *steppedClock
	zips   map[string]*scripted
	order  []string // the names of zips, in the order of their start
	dead   []*scripted
	ends   map[string]*processEnd
	joined []string // the names of ends, in the order of their joins
	asides []func()
	broken error  // the error of the next operations that block
	doors  uint16 // the number of doors that the kernel has opened
	cuts   bool   // whether dialled links break at once
	job    handshake.Identity
	out    strings.Builder
}

// scripted is a forwarder without threads.
type scripted struct {
	f     *Forwarder
	links map[string][]*memnet.Link // the links to other forwarders, in the order of dialling
	taken map[string][]*memnet.Link // the links that other forwarders have dialled
}

// processEnd is a process's end of its link.
type processEnd struct {
	name, zip string
	link      *memnet.Link
	joiner    *handshake.Joiner // nil: it has joined
	rank      uint32            // the virtual rank, once it has joined
	inside    string            // where it takes connections that the kernel passes on
	stalled   bool
	deaf      bool
	gone      bool
	buf       []byte
	seq       uint64
	lostsSent uint32 // the number of Losts that it has sent
}

func (s *script) printf(format string, args ...any) {
	s.out.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (s *script) num(w string) int {
	n, err := strconv.Atoi(w)
	if err != nil {
		s.t.Fatalf("%q is not a number", w)
	}
	return n
}

func (s *script) duration(w string) time.Duration {
	d, err := time.ParseDuration(w)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *script) end(name string) *processEnd {
	e := s.ends[name]
	if e == nil {
		s.t.Fatalf("no process has the name %s", name)
	}
	return e
}

func (s *script) send(e *processEnd, frame []byte) {
	if n, err := e.link.TryWrite(frame); n != len(frame) {
		s.t.Fatalf("%s cannot send: %d of %d bytes, %v", e.name, n, len(frame), err)
	}
}

func (s *script) leave(e *processEnd) {
	e.gone = true
	e.link.Close()
}

// settle lets forwarders and processes run until none can do more.
func (s *script) settle() {
	for busy := true; busy; {
		busy = false
		for _, name := range s.order {
			for s.zips[name].f.workers[0].Loop.Step() {
				busy = true
			}
		}
		for _, name := range s.joined {
			if e := s.ends[name]; !e.gone && !e.stalled && s.read(e) {
				busy = true
			}
		}
	}
}

// wait lets time pass in steps of at most 250 ms, and lets forwarders and processes run after each.
func (s *script) wait(d time.Duration) {
	const step = 250 * time.Millisecond
	for ; d > 0; d -= step {
		s.now.advance(min(d, step))
		s.settle()
	}
}

// read handles the frames that have arrived at a process.
func (s *script) read(e *processEnd) bool {
	p := make([]byte, 64<<10)
	n, err := e.link.TryRead(p)
	if err == transport.ErrAgain {
		return false
	}
	if err != nil {
		what := err.Error()
		if errors.Is(err, io.EOF) {
			what = "end of stream"
		}
		s.printf("  %s→%s %s", e.zip, e.name, what)
		s.leave(e)
		return true
	}
	e.buf = append(e.buf, p[:n]...)
	for {
		h, err := wire.ParseHeader(e.buf)
		if err != nil || len(e.buf) < wire.HeaderLen+int(h.Length) {
			return true
		}
		body := e.buf[wire.HeaderLen : wire.HeaderLen+int(h.Length)]
		if h.Type != wire.TypeCount { // these come by themselves
			s.came(e, h, body)
		}
		e.buf = e.buf[wire.HeaderLen+int(h.Length):]
	}
}

// came prints a frame and responds to it as a process would. Pings and their answers are not
// printed.
func (s *script) came(e *processEnd, h wire.Header, body []byte) {
	if h.Type != wire.TypePing {
		s.printf("  %s→%s %s", e.zip, e.name, describe(h, body))
	}
	switch {
	case e.joiner != nil:
		if h.Type == wire.TypePing && e.deaf {
			return
		}
		e.joiner.HandleMessage(h, body)
		_ = handshake.Drive(e.joiner, func(frame []byte) error { s.send(e, frame); return nil },
			func(ev handshake.Event) error {
				switch ev.Kind {
				case handshake.Asked:
					e.joiner.Inside(e.inside)
				case handshake.Joined:
					e.joiner, e.rank = nil, ev.Layout.Rank
				case handshake.Ended:
					s.leave(e)
				}
				return nil
			})
	case h.Type == wire.TypePing && !e.deaf:
		s.send(e, frame(wire.TypePong, nil))
	}
}

// close frees descriptors.
func (s *script) close() {
	for _, z := range append(slices.Collect(maps.Values(s.zips)), s.dead...) {
		for p := range z.f.peers {
			p.conn.Link().Close()
		}
		z.f.workers.Close()
	}
	for _, e := range s.ends {
		e.link.Close()
	}
}

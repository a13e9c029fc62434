package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/mmpi/engine/link"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
)

// Waits is what a process has waited for so far.
type Waits struct {
	Call         string // the MPI function that the program has called last
	Begun, Ended uint32 // numbers of waits; equal: the process does not wait
}

// waitTag is the tag of a report, beside the tags of Finish.
const waitTag = 8

// standstill finds out whether all processes of the job wait and no message arrives, as they do for
// ever if they call different functions. A process that has been in one wait for Limits.Standstill
// reports the function's name to process 0, and reports an empty name when that wait is over.
// Process 0, once it waits as long itself, reads the reports, and warns the user, once, when all
// processes have been waiting for another tenth of that time.
type standstill struct {
	world *World
	p2p   *pt2pt.Endpoint
	waits func() Waits // nil: nothing is looked at
	warn  func(string) // nil: nobody is told
	limit time.Duration

	last     Waits         // when it was looked at last
	segments uint64        // that had arrived then
	since    time.Duration // both have been so since then
	said     string        // the report that process 0 has; "": none, or that the wait is over
	sent     bool          // there has been a report
	cell     Cell          // of the report that is sent, or of the receive at process 0

	// At process 0.
	warned   bool
	posted   bool // there is a receive
	buf      [maxCall]byte
	calls    map[int]string // what the others wait in, by rank
	complete time.Duration  // all of them have been waiting since then; 0: not all are
}

// elsewhere are calls in which a process waits for another job.
var elsewhere = []string{"MPI_Comm_accept", "MPI_Comm_connect", "MPI_Lookup_name", "MPI_Publish_name"}

// look notes what the process waits in, and returns the function's name if that has been so for the
// limit, else "".
func (s *standstill) look(now time.Duration, w Waits, segments uint64) string {
	if w != s.last || segments != s.segments || w.Begun == w.Ended || slices.Contains(elsewhere, w.Call) {
		s.last, s.segments, s.since = w, segments, now
	}
	if now-s.since < s.limit {
		return ""
	}
	return w.Call
}

// hear notes the report of another process.
func (s *standstill) hear(rank int, call string) {
	if s.calls == nil {
		s.calls = map[int]string{}
	}
	delete(s.calls, rank)
	if call != "" {
		s.calls[rank] = printable(call)
	}
}

// printable returns the name of an MPI function, or a word for what cannot be one.
func printable(call string) string {
	for _, c := range call {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "an unknown function"
		}
	}
	return call
}

// all reports whether the other processes, of which there are others, have all been waiting for
// long enough.
func (s *standstill) all(now time.Duration, others int) bool {
	switch {
	case len(s.calls) < others:
		s.complete = 0
	case s.complete == 0:
		s.complete = now
	}
	return s.complete != 0 && now-s.complete >= s.limit/10
}

// clustersWait names what each cluster waits in, with the number of processes where there are
// several functions.
func clustersWait(w *World, call func(rank int) string) string {
	var clusters []string
	rank := 0
	for _, c := range w.Clusters {
		count := map[string]int{}
		for range c.Size {
			count[call(rank)]++
			rank++
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(count)) {
			if len(count) == 1 {
				parts = append(parts, name)
			} else {
				parts = append(parts, fmt.Sprintf("%s (%d of %d)", name, count[name], c.Size))
			}
		}
		clusters = append(clusters, fmt.Sprintf("cluster %s waits in %s", c.Name, strings.Join(parts, ", ")))
	}
	return strings.Join(clusters, "; ")
}

// tick looks at what the process waits in. The caller has the engine's lock.
func (s *standstill) tick(now time.Duration) {
	if s.waits == nil || len(s.world.Clusters) < 2 || s.p2p.Err() != nil {
		return
	}
	call := s.look(now, s.waits(), link.Segments(s.p2p.Links()))
	switch {
	case s.world.Rank != 0:
		s.report(call)
	case call != "" && !s.warned:
		s.read()
		if s.all(now, s.world.Size()-1) && s.warn != nil {
			s.warned = true
			s.warn(s.text(call))
		}
	default:
		if s.posted {
			s.p2p.Retract(&s.cell)
			s.posted = false
		}
		s.complete = 0
	}
}

// report tells process 0 what this process waits in, if that has changed.
func (s *standstill) report(call string) {
	if call == s.said || s.sent && !s.cell.Done() {
		return
	}
	s.said, s.sent, s.cell = call, true, Cell{}
	err := s.p2p.Isend(s.p2p.Control(), KindInternal, []byte(call), 0, waitTag, false, &s.cell)
	s.sent = err == nil // an engine that has failed says so elsewhere
}

// read notes the reports that have come.
func (s *standstill) read() {
	for s.p2p.Err() == nil && (!s.posted || s.cell.Done()) {
		if s.posted && s.cell.Err() == nil {
			s.hear(int(s.cell.Source), string(s.buf[:s.cell.Bytes]))
		}
		s.cell = Cell{}
		_, err := s.p2p.Irecv(s.p2p.Control(), KindInternal, s.buf[:], AnySource, waitTag, &s.cell)
		if s.posted = err == nil; !s.posted {
			return
		}
	}
}

// text is the warning, at process 0, which itself waits in call.
func (s *standstill) text(call string) string {
	text := fmt.Sprintf("all processes have waited for %v, and nothing has arrived: %s. If the job stands still, see "+
		"docs/howto/debugging.md", s.limit, clustersWait(s.world, func(rank int) string {
		if rank == 0 {
			return call
		}
		return s.calls[rank]
	}))
	if s.world.Libraries > 1 {
		text += "; the clusters have different MPI libraries, and a program that looks at MPI_VERSION may call " +
			"different functions in them"
	}
	return text
}

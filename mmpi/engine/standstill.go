package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
)

// Waits describes the waits of a process so far.
type Waits struct {
	Call         string // the MPI function that the program has called last
	Begun, Ended uint32 // the numbers of waits begun and ended, equal if the process does not wait
}

// waitTag is the tag of a report. It differs from the tags of Finish.
const waitTag = 8

// standstill finds out whether all processes of the job wait and no message arrives, as they do for
// ever if they call different functions. A process that has been in one wait for Limits.Standstill
// reports the function's name to process 0, and reports an empty name when that wait is over.
// Process 0 always has a receive for reports, so that they use up no credit. It warns the user,
// once, when all processes, itself included, have been waiting for another tenth of that time.
type standstill struct {
	world *World
	p2p   *pt2pt.Endpoint
	waits func() Waits  // a copy of Config.Waits; nil: this process never counts as waiting
	warn  func(string)  // shows the warning to the user; nil disables it
	limit time.Duration // a copy of Limits.Standstill

	last    Waits         // the waits of this process at the last look
	arrived uint64        // the value of pt2pt.Endpoint.Arrived at the last look
	since   time.Duration // the time since which last and arrived have not changed

	reported string // the last report sent; "" says that this process does not wait
	sent     bool   // whether a report has been sent, with cell
	cell     Cell   // the cell of the report sent, or of the receive at process 0

	// Process 0 alone uses the fields below.
	warned   bool           // whether the user has been warned
	posted   bool           // whether a receive has been posted, with cell and buf
	buf      [maxCall]byte  // the report being received
	calls    map[int]string // the function that each other process waits in, by rank
	complete time.Duration  // the time since which all processes have been waiting; 0: not all are
}

// look records the wait that the process is in. It returns the function's name if the process has
// been in that wait for the limit and no message has arrived, else "".
func (s *standstill) look(now time.Duration, w Waits, arrived uint64) string {
	if w != s.last || arrived != s.arrived || w.Begun == w.Ended {
		s.last, s.arrived, s.since = w, arrived, now
	}
	if now-s.since < s.limit {
		return ""
	}
	return w.Call
}

// record records the report of another process.
func (s *standstill) record(rank int, call string) {
	if s.calls == nil {
		s.calls = map[int]string{}
	}
	delete(s.calls, rank)
	if call != "" {
		s.calls[rank] = printable(call)
	}
}

// printable returns call if it can be the name of an MPI function, and a phrase that stands for it
// otherwise.
func printable(call string) string {
	for _, c := range call {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "an unknown function"
		}
	}
	return call
}

// all reports whether the other processes, whose number is others, have all been waiting for long
// enough.
func (s *standstill) all(now time.Duration, others int) bool {
	switch {
	case len(s.calls) < others:
		s.complete = 0
	case s.complete == 0:
		s.complete = now
	}
	return s.complete != 0 && now-s.complete >= s.limit/10
}

// describeWaits returns the functions that each cluster waits in, with the number of processes in
// each if there are several functions.
func describeWaits(w *World, call func(rank int) string) string {
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

// tick checks the wait that the process is in, and reports it. The caller holds the engine's lock.
func (s *standstill) tick(now time.Duration) {
	if len(s.world.Clusters) < 2 || s.p2p.Err() != nil {
		return
	}
	call := ""
	if s.waits != nil {
		call = s.look(now, s.waits(), s.p2p.Arrived())
	}
	if s.world.Rank != 0 {
		s.report(call)
		return
	}
	s.read()
	if call == "" {
		s.complete = 0
	} else if s.all(now, s.world.Size()-1) && !s.warned && s.warn != nil {
		s.warned = true
		s.warn(s.text(call))
	}
}

// report sends process 0 the function that this process waits in, if that has changed.
func (s *standstill) report(call string) {
	if call == s.reported || s.sent && !s.cell.Done() {
		return
	}
	s.reported, s.sent, s.cell = call, true, Cell{}
	err := s.p2p.Isend(s.p2p.Control(), KindInternal, []byte(call), 0, waitTag, false, &s.cell)
	s.sent = err == nil // an engine that has failed says so elsewhere
}

// read records the reports that have arrived, and leaves a receive posted for the next.
func (s *standstill) read() {
	for s.p2p.Err() == nil && (!s.posted || s.cell.Done()) {
		if s.posted && s.cell.Err() == nil {
			s.record(int(s.cell.Source), string(s.buf[:s.cell.Bytes]))
		}
		s.cell = Cell{}
		_, err := s.p2p.Irecv(s.p2p.Control(), KindInternal, s.buf[:], AnySource, waitTag, &s.cell)
		if s.posted = err == nil; !s.posted {
			return
		}
	}
}

// text returns the warning at process 0, which itself waits in call.
func (s *standstill) text(call string) string {
	text := fmt.Sprintf("all processes have waited for %v, and nothing has arrived from another cluster: %s. "+
		"If the job stands still, see docs/howto/debugging.md", s.limit, describeWaits(s.world, func(rank int) string {
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

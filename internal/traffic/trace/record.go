package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Recorder keeps the traffic of one rank while the job runs: a count per peer, and up to a limit of
// events with their times. An event costs a lock and an append. It is safe for concurrent use.
type Recorder struct {
	mu       sync.Mutex
	rank     int
	limit    int
	totals   map[int]*[2]int64 // messages and bytes by destination
	sent     []event
	received []event
}

type event struct {
	at    int64 // time since the job's start, in ns
	peer  int32
	bytes int64
	used  int64 // processor time that the rank has spent computing so far, in ns
}

// NewRecorder creates the recorder of a virtual rank. limit is the number of events of each
// direction that are kept with their times (32 bytes each). Beyond it only the counts continue.
func NewRecorder(rank, limit int) *Recorder {
	return &Recorder{rank: rank, limit: limit, totals: make(map[int]*[2]int64)}
}

// Sent records a message to a rank. at is the time of the send call (ns since the job's start), and
// used the processor time that the rank had spent computing by then (ns).
func (r *Recorder) Sent(at, used int64, dst int, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(dst, bytes)
	if len(r.sent) < r.limit {
		r.sent = append(r.sent, event{at, int32(dst), bytes, used})
	}
}

func (r *Recorder) count(dst int, bytes int64) {
	t := r.totals[dst]
	if t == nil {
		t = new([2]int64)
		r.totals[dst] = t
	}
	t[0]++
	t[1] += bytes
}

// Received records that a message from a rank has arrived completely. at is the time of the receive
// (ns since the job's start), and used the processor time spent computing by then (ns).
func (r *Recorder) Received(at, used int64, src int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.received) < r.limit {
		r.received = append(r.received, event{at: at, peer: int32(src), used: used})
	}
}

// Write writes the rank's part, for Merge. host is the rank's host.
//
//	zipper-trace-part 1
//	rank RANK HOST
//	total DST MESSAGES BYTES
//	sent TIME DST BYTES USED
//	received TIME SRC USED
//	end RECORDS
func (r *Recorder) Write(w io.Writer, host string) error {
	if err := word(host); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "zipper-trace-part 1\nrank %d %s\n", r.rank, host)
	var peers []int
	for dst := range r.totals {
		peers = append(peers, dst)
	}
	slices.Sort(peers)
	for _, dst := range peers {
		fmt.Fprintf(b, "total %d %d %d\n", dst, r.totals[dst][0], r.totals[dst][1])
	}
	for _, e := range r.sent {
		fmt.Fprintf(b, "sent %d %d %d %d\n", e.at, e.peer, e.bytes, e.used)
	}
	for _, e := range r.received {
		fmt.Fprintf(b, "received %d %d %d\n", e.at, e.peer, e.used)
	}
	fmt.Fprintf(b, "end %d\n", 1+len(peers)+len(r.sent)+len(r.received))
	return b.Flush()
}

// Merge joins the parts of all ranks into a trace. The n-th message that a rank sent to another is
// the n-th one that this received from it. Messages of which only one end was recorded (beyond a
// limit, or never received) are left out, but the totals have them; unmatched counts those whose
// send was recorded. Estimated differences of the ranks' clocks are removed from the times (align).
// A message that still ends before it starts gets the time of its start as its end. Inside a
// cluster a rank does not see all messages that it receives. If the recorded numbers of messages
// that one rank sent and another one received from it differ there, the times of that pair are left
// out, and not counted in unmatched.
func Merge(job string, clusters []Cluster, parts []io.Reader) (t *Trace, unmatched int, err error) {
	t = &Trace{Job: job, Clusters: clusters, Hosts: make(map[int]string)}
	m := merger{t: t, sent: make(map[[2]int][]event), received: make(map[[2]int][]event)}
	for i, part := range parts {
		if err := m.read(part); err != nil {
			return nil, 0, fmt.Errorf("part %d: %w", i, err)
		}
	}
	m.unseen()
	m.align()
	for pair, sent := range m.sent {
		ends := m.received[pair]
		n := min(len(sent), len(ends))
		unmatched += len(sent) - n
		for k := range n {
			t.Messages = append(t.Messages, Message{Start: sent[k].at, End: max(sent[k].at, ends[k].at), Src: pair[0],
				Dst: pair[1], Bytes: sent[k].bytes, SrcUsed: sent[k].used, DstUsed: ends[k].used})
		}
	}
	slices.SortFunc(t.Messages, func(a, b Message) int {
		for _, d := range [...]int64{a.Start - b.Start, int64(a.Src - b.Src), int64(a.Dst - b.Dst), a.End - b.End,
			a.Bytes - b.Bytes} {
			if d != 0 {
				return int(min(max(d, -1), 1))
			}
		}
		return 0
	})
	return t, unmatched, nil
}

// unseen leaves out the pairs inside a cluster with messages that were not seen to arrive, because
// it is not known which messages these are.
func (m *merger) unseen() {
	cluster := m.t.Places()
	for pair, sent := range m.sent {
		if cluster[pair[0]] == cluster[pair[1]] && len(sent) != len(m.received[pair]) {
			delete(m.sent, pair)
			delete(m.received, pair)
		}
	}
}

// longest is the greatest time in a part, in ns. Sums of such times do not overflow.
const longest = 1 << 55

type merger struct {
	t        *Trace
	sent     map[[2]int][]event
	received map[[2]int][]event
}

func (m *merger) read(r io.Reader) error {
	s := bufio.NewScanner(r)
	ranks := m.t.Ranks()
	line, records, rank, ended := 0, 0, -1, false
	record := func(f []string) error {
		if line == 1 {
			if len(f) != 2 || f[0] != "zipper-trace-part" || f[1] != "1" {
				return errors.New("not a part of a trace: want the first line zipper-trace-part 1")
			}
			return nil
		}
		size, ok := map[string]int{"rank": 3, "total": 4, "sent": 5, "received": 4, "end": 2}[f[0]]
		if !ok || len(f) != size {
			return fmt.Errorf("unknown record %q of %d fields", f[0], len(f))
		}
		if (f[0] == "rank") != (rank < 0) || ended {
			return errors.New("want one rank record first and one end record last")
		}
		var v [4]int64
		numeric := f[1:]
		if f[0] == "rank" {
			numeric = f[1:2]
		}
		if err := numbers(numeric, v[:len(numeric)]); err != nil {
			return err
		}
		used, timed := map[string]int64{"sent": v[3], "received": v[2]}[f[0]]
		if timed && max(v[0], used) > longest {
			return fmt.Errorf("%d ns is more than a year", max(v[0], used))
		}
		peer := map[string]int64{"rank": v[0], "total": v[0], "sent": v[1], "received": v[1]}[f[0]]
		if peer >= int64(ranks) {
			return fmt.Errorf("rank %d: the job has %d ranks", peer, ranks)
		}
		if f[0] != "rank" && f[0] != "end" && int(peer) == rank {
			return fmt.Errorf("rank %d sends to itself", rank)
		}
		switch f[0] {
		case "rank":
			if _, ok := m.t.Hosts[int(v[0])]; ok {
				return fmt.Errorf("there are two parts of rank %d", v[0])
			}
			rank = int(v[0])
			m.t.Hosts[rank] = f[2]
		case "total":
			m.t.Totals = append(m.t.Totals, Total{Src: rank, Dst: int(v[0]), Messages: v[1], Bytes: v[2]})
		case "sent":
			pair := [2]int{rank, int(v[1])}
			m.sent[pair] = append(m.sent[pair], event{at: v[0], bytes: v[2], used: v[3]})
		case "received":
			pair := [2]int{int(v[1]), rank}
			m.received[pair] = append(m.received[pair], event{at: v[0], used: v[2]})
		case "end":
			ended = true
			if v[0] != int64(records) {
				return fmt.Errorf("the end record counts %d records, the part has %d", v[0], records)
			}
		}
		records++
		return nil
	}
	for s.Scan() {
		line++
		f := strings.Fields(s.Text())
		if len(f) == 0 {
			f = []string{""}
		}
		if err := record(f); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("line %d: %w", line+1, err)
	}
	if !ended {
		return fmt.Errorf("line %d: the part ends without an end record: it was cut short", line)
	}
	return nil
}

// Write writes the whole trace.
func (t *Trace) Write(w io.Writer) error {
	x, err := NewWriter(w, t.Job, t.Clusters)
	if err != nil {
		return err
	}
	for r := range t.Ranks() {
		if h, ok := t.Hosts[r]; ok {
			if err := x.Host(r, h); err != nil {
				return err
			}
		}
	}
	for _, v := range t.Totals {
		if err := x.Total(v); err != nil {
			return err
		}
	}
	for _, v := range t.Messages {
		if err := x.Message(v); err != nil {
			return err
		}
	}
	return x.Close()
}

// Package trace reads and writes the file that `zipper run --record FILE` writes: the traffic
// between ranks, with times. It is text, one record a line, so that tools and people can read it:
//
//	zipper-trace 1
//	job NAME
//	cluster NAME RANKS                       in order of virtual rank
//	host RANK NAME                           optional
//	total SRC DST MESSAGES BYTES             the communication matrix
//	message START END SRC DST BYTES [USED USED]  a message
//	end RECORDS
//
// SRC, DST and RANK are virtual ranks. START and END are nanoseconds since the job's start on one
// clock, of the send call and of the receive's completion; messages are in no particular order.
// USED is the processor time that the sender had spent computing until START, and the receiver
// until END, in nanoseconds, without the time of waiting for messages. total lines add up (every
// rank may write its own). A file may have totals only, messages only, or both. The last line
// counts all lines before it but the first, so that a truncated file is noticed. Empty lines and
// comments, from a # on, are ignored and not counted.
package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/internal/lines"
)

// MaxRanks bounds the memory that a file can make a reader allocate.
const MaxRanks = 1 << 20

// Cluster is a name and its number of ranks.
type Cluster struct {
	Name  string
	Ranks int
}

// Total is the traffic from one rank to another over the whole job.
type Total struct {
	Src, Dst        int
	Messages, Bytes int64
	Line            int // line of the file that was read; not written
}

// Message is one message. Times are in nanoseconds since the start of the job.
type Message struct {
	Start, End int64
	Src, Dst   int
	Bytes      int64
	Line       int
	// SrcUsed and DstUsed are the processor times that the sender had spent computing by Start, and
	// the receiver by End, in ns; 0 if not known.
	SrcUsed, DstUsed int64
}

// Trace is the content of a whole file.
type Trace struct {
	Job      string
	Clusters []Cluster
	Hosts    map[int]string
	Totals   []Total
	Messages []Message
}

// Ranks returns the number of virtual ranks.
func (t *Trace) Ranks() int {
	n := 0
	for _, c := range t.Clusters {
		n += c.Ranks
	}
	return n
}

// Places returns the cluster of each virtual rank, as an index of Clusters.
func (t *Trace) Places() (list []int) {
	for i, c := range t.Clusters {
		list = append(list, slices.Repeat([]int{i}, c.Ranks)...)
	}
	return list
}

// Matrix returns the communication matrix: bytes by pair, from the totals, or from the messages if
// there are no totals.
func (t *Trace) Matrix() map[[2]int]int64 {
	m := make(map[[2]int]int64)
	for _, x := range t.Totals {
		m[[2]int{x.Src, x.Dst}] += x.Bytes
	}
	if len(t.Totals) == 0 {
		for _, x := range t.Messages {
			m[[2]int{x.Src, x.Dst}] += x.Bytes
		}
	}
	return m
}

// Writer writes a trace record by record. It is not safe for concurrent use. After an error all
// further writes are dropped; Close returns the error.
type Writer struct {
	w       *bufio.Writer
	records int
	err     error
}

// NewWriter writes the head of a file. Names must be one word.
func NewWriter(w io.Writer, job string, clusters []Cluster) (*Writer, error) {
	t := &Writer{w: bufio.NewWriter(w)}
	fmt.Fprintln(t.w, "zipper-trace 1")
	if err := word(job); err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	t.line("job %s", job)
	for _, c := range clusters {
		if err := word(c.Name); err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		t.line("cluster %s %d", c.Name, c.Ranks)
	}
	return t, t.err
}

func word(s string) error {
	if f := strings.Fields(s); len(f) != 1 || f[0] != s || strings.Contains(s, "#") {
		return fmt.Errorf("name %q: must be one word without #", s)
	}
	return nil
}

func (t *Writer) line(format string, args ...any) {
	if _, err := fmt.Fprintf(t.w, format+"\n", args...); err != nil && t.err == nil {
		t.err = err
	}
	t.records++
}

// Host writes the host of a rank.
func (t *Writer) Host(rank int, name string) error {
	if err := word(name); err != nil {
		return err
	}
	t.line("host %d %s", rank, name)
	return t.err
}

// Total writes an entry of the communication matrix.
func (t *Writer) Total(x Total) error {
	t.line("total %d %d %d %d", x.Src, x.Dst, x.Messages, x.Bytes)
	return t.err
}

// Message writes a message.
func (t *Writer) Message(m Message) error {
	b := append(t.w.AvailableBuffer(), "message "...)
	fields := []int64{m.Start, m.End, int64(m.Src), int64(m.Dst), m.Bytes, m.SrcUsed, m.DstUsed}
	if m.SrcUsed == 0 && m.DstUsed == 0 {
		fields = fields[:5]
	}
	for i, v := range fields {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, v, 10)
	}
	if _, err := t.w.Write(append(b, '\n')); err != nil && t.err == nil {
		t.err = err
	}
	t.records++
	return t.err
}

// Close writes the end record and flushes. It does not close the file.
func (t *Writer) Close() error {
	fmt.Fprintf(t.w, "end %d\n", t.records)
	if err := t.w.Flush(); t.err == nil {
		t.err = err
	}
	return t.err
}

// ReadFile reads a file by its name. Errors name the file and the line.
func ReadFile(name string) (*Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// Read reads a whole file. Errors name the line.
func Read(r io.Reader) (*Trace, error) {
	p := parser{t: &Trace{Hosts: make(map[int]string)}}
	err := lines.Each(r, func(line int, f []string) error {
		p.line = line
		return p.record(f)
	})
	if err != nil {
		return nil, err
	}
	if !p.ended {
		return nil, fmt.Errorf("line %d: the trace ends without an end record: it was cut short", p.line)
	}
	return p.t, nil
}

type parser struct {
	t                   *Trace
	line, records       int
	ranks               int
	headed, data, ended bool
}

func (p *parser) record(f []string) error {
	if !p.headed {
		if len(f) != 2 || f[0] != "zipper-trace" {
			return errors.New("not a trace: want the first line zipper-trace 1")
		}
		if f[1] != "1" {
			return fmt.Errorf("trace of version %s: this program reads version 1", f[1])
		}
		p.headed = true
		return nil
	}
	if p.ended {
		return errors.New("records after the end record")
	}
	size, ok := map[string]int{"job": 2, "cluster": 3, "host": 3, "total": 5, "message": 6, "end": 2}[f[0]]
	if !ok {
		return fmt.Errorf("unknown record %q", f[0])
	}
	if len(f) != size && (f[0] != "message" || len(f) != size+2) {
		return fmt.Errorf("%s has %d fields, want %d", f[0], len(f)-1, size-1)
	}
	var err error
	switch f[0] {
	case "job":
		p.t.Job = f[1]
	case "cluster":
		err = p.cluster(f)
	case "host":
		var v [1]int64
		if err = numbers(f[1:2], v[:]); err == nil {
			if err = p.rank(v[0]); err == nil {
				p.t.Hosts[int(v[0])] = f[2]
			}
		}
	case "total":
		p.data = true
		var v [4]int64
		if err = numbers(f[1:], v[:]); err == nil {
			p.t.Totals = append(p.t.Totals, Total{int(v[0]), int(v[1]), v[2], v[3], p.line})
			err = p.pair(v[0], v[1])
		}
	case "message":
		p.data = true
		var v [7]int64
		if err = numbers(f[1:], v[:len(f)-1]); err == nil {
			if v[1] < v[0] {
				return fmt.Errorf("message ends at %d before it starts at %d", v[1], v[0])
			}
			p.t.Messages = append(p.t.Messages, Message{v[0], v[1], int(v[2]), int(v[3]), v[4], p.line, v[5], v[6]})
			err = p.pair(v[2], v[3])
		}
	case "end":
		var v [1]int64
		if err = numbers(f[1:], v[:]); err == nil && v[0] != int64(p.records) {
			err = fmt.Errorf("the end record counts %d records, the file has %d: part of it is missing", v[0],
				p.records)
		}
		p.ended = true
	}
	p.records++
	return err
}

func (p *parser) cluster(f []string) error {
	if p.data {
		return errors.New("clusters must come before totals and messages")
	}
	var v [1]int64
	if err := numbers(f[2:], v[:]); err != nil {
		return err
	}
	if v[0] < 1 || v[0] > MaxRanks || p.ranks+int(v[0]) > MaxRanks {
		return fmt.Errorf("cluster %s has %d ranks: want 1 to %d in all", f[1], v[0], MaxRanks)
	}
	p.ranks += int(v[0])
	p.t.Clusters = append(p.t.Clusters, Cluster{f[1], int(v[0])})
	return nil
}

func (p *parser) rank(r int64) error {
	if r >= int64(p.ranks) {
		return fmt.Errorf("rank %d: the job has %d ranks", r, p.ranks)
	}
	return nil
}

func (p *parser) pair(src, dst int64) error {
	if err := p.rank(src); err != nil {
		return err
	}
	if err := p.rank(dst); err != nil {
		return err
	}
	if src == dst {
		return fmt.Errorf("rank %d sends to itself", src)
	}
	return nil
}

// numbers parses non-negative integers.
func numbers(f []string, v []int64) error {
	for i := range v {
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a number of 0 or more", f[i])
		}
		v[i] = n
	}
	return nil
}

package collectives

import (
	"fmt"
	"strconv"
	"strings"
)

// Tuning holds where one algorithm takes over from another. Every process of a job must use the
// same values; zero means the default.
//
//	collective      small                                     large
//	reduce          one segment, one leader a cluster         segments of Segment bytes, pipelined, from host to host; or
//	                                                          native and by leaders that take turns
//	scan, exscan    a part for each rank ≤ Slice bytes        segments from rank to rank, or as with reduce natively
//	bcast           as reduce, while the message has at most   a slice of every segment for each rank: native scatter, every
//	                Segment bytes or a slice < Slice bytes    rank sends its slice, native alltoall and allgather
//	allreduce       cluster of at most 8 ranks: the leader     the same with native alltoall, combining, native allgather; with
//	                gathers and combines; else as reduce,     equally many ranks on each of several hosts first inside each
//	                while bytes × ranks of the largest cluster
//	                ≤ Few or a slice < Slice bytes
//	gather,         cluster's blocks ≤ Combine bytes (uniform  every rank straight to or from the root
//	scatter         counts only): one message per cluster
//	allgather       all blocks × ranks of the largest cluster  all blocks ≤ Few bytes: every rank sends its block to one rank of
//	                ≤ 2 Few bytes, all clusters of at most 8  each other cluster, native allgather there; more: in segments, as
//	                ranks, or all blocks ≤ Combine bytes:     equal slices
//	                leaders exchange one message
//	alltoall        block ≤ CombineBlock bytes (uniform counts cluster of at most 8 ranks, blocks ≤ Pair bytes: a rank's all to
//	                only): one message per pair of clusters;  one rank of each other cluster, native alltoall there; other
//	                of at most 8 ranks, those inside it go    blocks: every pair of ranks by itself, a block of at most
//	                with them; in pieces of at most Window    Segment bytes in chunks
//	                bytes at a leader
//	reduce_scatter  all blocks ≤ Combine bytes: via leaders   segments combined on hosts, in clusters, by owners; or native
//	                                                          reduce_scatter, then straight to the owner
//
// A reduction from host to host and a large allgather have segments that are 1/64 shorter.
//
// Blocks of up to Segment bytes of an alltoall cross in messages of at most Chunk bytes: a
// forwarder relays whole frames, and many senders' frames arrive side by side, so whole blocks
// would all come late and leave the second link idle meanwhile.
type Tuning struct {
	Segment int // bytes; default 64 KiB, the eager limit, so that a segment crosses without a handshake
	Chunk   int // bytes; default 16 KiB
	// Window is the number of bytes of segments that a pipeline keeps under way between clusters,
	// and of a leader's alltoall; default 16 MiB.
	Window       int
	LocalDepth   int // number of native collectives of one pipeline stage at a time; default 2
	Leaders      int // largest number of leaders per cluster; default 4
	Slice        int // bytes of a rank's part of a message; default 2 KiB
	Combine      int // bytes; default 32 KiB
	CombineBlock int // bytes; default 1 KiB
	Few          int // bytes; default 128 KiB
	Pair         int // bytes; default 4 KiB
}

// Filled returns the tuning with defaults in place of zeros.
func (t Tuning) Filled() Tuning {
	or := func(v, d int) int {
		if v > 0 {
			return v
		}
		return d
	}
	return Tuning{
		Segment: or(t.Segment, 64<<10), Chunk: or(t.Chunk, 16<<10), Window: or(t.Window, 16<<20),
		LocalDepth: or(t.LocalDepth, 2),
		Leaders:    or(t.Leaders, 4), Slice: or(t.Slice, 2<<10), Combine: or(t.Combine, 32<<10),
		CombineBlock: or(t.CombineBlock, 1<<10), Few: or(t.Few, 128<<10), Pair: or(t.Pair, 4<<10),
	}
}

// String returns the tuning with defaults filled in, in the form that ParseTuning parses. It is
// equal for equal behaviour.
func (t Tuning) String() string {
	t = t.Filled()
	return fmt.Sprintf("segment=%d,chunk=%d,window=%d,localdepth=%d,leaders=%d,slice=%d,combine=%d,combineblock=%d,few=%d,pair=%d",
		t.Segment, t.Chunk, t.Window, t.LocalDepth, t.Leaders, t.Slice, t.Combine, t.CombineBlock, t.Few, t.Pair)
}

// window returns the number of segments under way between clusters.
func (t Tuning) window() int { return max(1, t.Window/t.Segment) }

// kept returns the number of bytes of a message that a rank hands over at once and then leaves, if
// other ranks get the result: a quarter of Window, by default the limit of Linux for the size of a
// socket's buffer.
func (t Tuning) kept() int { return max(t.Segment, t.Window/4) }

// native returns a tuning with segments that native MPI, too, sends without a handshake. The limit
// of Open MPI over TCP is 64 KiB with the header.
func (t Tuning) native() Tuning {
	t.Segment -= t.Segment / 64
	return t
}

// finer returns a tuning with smaller segments, for n bytes that go from rank to rank: about
// segments of them, of at least Chunk bytes, so that all ranks have some at a time.
func (t Tuning) finer(n, segments int) Tuning {
	t.Segment = min(t.Segment, max(n/segments, t.Chunk))
	return t
}

// Table returns the tuning as a file with a setting a line, which ParseTuning parses. about, if not
// empty, is put before it as a comment.
func (t Tuning) Table(about string) string {
	var b strings.Builder
	for line := range strings.Lines(about) {
		fmt.Fprintf(&b, "# %s\n", strings.TrimSpace(line))
	}
	for part := range strings.SplitSeq(t.String(), ",") {
		b.WriteString(part + "\n")
	}
	return b.String()
}

// ParseTuning parses "segment=64K,leaders=2": any of segment, chunk, window, localdepth, leaders,
// slice, combine, combineblock, few, pair, each with a positive number; sizes in bytes or with K or
// M. The settings may be on lines of their own, and the rest of a line from a # on is a comment, as
// in a file of Table. "" gives the defaults.
func ParseTuning(s string) (Tuning, error) {
	var t Tuning
	for line := range strings.Lines(s) {
		line, _, _ = strings.Cut(line, "#")
		if err := t.parse(line); err != nil {
			return Tuning{}, err
		}
	}
	return t, nil
}

// parse sets the fields of t from settings that are separated by commas, such as
// "segment=64K,few=4".
func (t *Tuning) parse(line string) error {
	fields := map[string]*int{"segment": &t.Segment, "chunk": &t.Chunk, "window": &t.Window,
		"localdepth": &t.LocalDepth, "leaders": &t.Leaders, "slice": &t.Slice,
		"combine": &t.Combine, "combineblock": &t.CombineBlock, "few": &t.Few, "pair": &t.Pair}
	for part := range strings.SplitSeq(line, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		field := fields[name]
		if field == nil {
			return fmt.Errorf("%q: no such setting of collectives; there are segment, chunk, window, localdepth, leaders, slice, combine, combineblock, few, pair", name)
		}
		unit := 1
		switch {
		case strings.HasSuffix(value, "K"):
			unit = 1 << 10
		case strings.HasSuffix(value, "M"):
			unit = 1 << 20
		}
		n, err := strconv.Atoi(strings.TrimRight(value, "KM"))
		if err != nil || n < 1 || n > 1<<30/unit {
			return fmt.Errorf("%s=%q: want a positive number below 1024M, as in segment=64K", name, value)
		}
		*field = n * unit
	}
	return nil
}

package pattern

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/contention/platform"
)

// ReadRanks reads a rank file: "RANK HOST" a line, every rank from 0 on once, in
// any order; # begins a comment. The result has the host of each rank.
func ReadRanks(r io.Reader, p *platform.Platform) ([]string, error) {
	hosts := make(map[int]string)
	s := bufio.NewScanner(r)
	line := 0
	for s.Scan() {
		line++
		text, _, _ := strings.Cut(s.Text(), "#")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 {
			return nil, fmt.Errorf("line %d: want RANK HOST", line)
		}
		rank, err := strconv.Atoi(f[0])
		if err != nil || rank < 0 {
			return nil, fmt.Errorf("line %d: %q is no rank", line, f[0])
		}
		if _, ok := hosts[rank]; ok {
			return nil, fmt.Errorf("line %d: rank %d is placed twice", line, rank)
		}
		if !p.HasHost(f[1]) {
			return nil, fmt.Errorf("line %d: unknown host %q", line, f[1])
		}
		hosts[rank] = f[1]
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", line+1, err)
	}
	places := make([]string, len(hosts))
	for rank := range places {
		h, ok := hosts[rank]
		if !ok {
			return nil, fmt.Errorf("the rank file places %d ranks but not rank %d", len(hosts), rank)
		}
		places[rank] = h
	}
	return places, nil
}

// WriteRanks writes a rank file.
func WriteRanks(w io.Writer, places []string) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "# RANK HOST")
	for rank, h := range places {
		fmt.Fprintln(b, rank, h)
	}
	return b.Flush()
}

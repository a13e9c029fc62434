package measure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseSizes reads the sizes to measure, in bytes: "1..16M" is all powers of two from 1 to 16 MiB,
// with their neighbours (one byte less, one byte more, and three halves) unless powers are enough;
// "8,64K" is these alone.
func ParseSizes(s string, neighbours bool) ([]int, error) {
	from, to, is := strings.Cut(s, "..")
	if !is {
		var list []int
		for part := range strings.SplitSeq(s, ",") {
			n, err := parseSize(part)
			if err != nil {
				return nil, err
			}
			list = append(list, n)
		}
		return list, nil
	}
	lo, err := parseSize(from)
	if err != nil {
		return nil, err
	}
	hi, err := parseSize(to)
	if err != nil {
		return nil, err
	}
	if hi < lo {
		return nil, fmt.Errorf("sizes %s: the last is smaller than the first", s)
	}
	return Between(lo, hi, neighbours), nil
}

// Between returns the powers of two from lo to hi, and their neighbours.
func Between(lo, hi int, neighbours bool) (list []int) {
	for n := 1; n <= 2*hi && n <= maxSize; n *= 2 {
		all := []int{n}
		if neighbours {
			all = []int{n - 1, n, n + 1, n / 2 * 3}
		}
		for _, v := range all {
			if v >= lo && v <= hi {
				list = append(list, v)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func parseSize(s string) (int, error) {
	s = strings.TrimSpace(s)
	unit := 1
	switch {
	case strings.HasSuffix(s, "K"):
		unit = 1 << 10
	case strings.HasSuffix(s, "M"):
		unit = 1 << 20
	}
	n, err := strconv.Atoi(strings.TrimRight(s, "KM"))
	if err != nil || n < 1 || n > maxSize/unit {
		return 0, fmt.Errorf("size %q: want a number of bytes up to 16M, as in 8, 64K or 1..16M", s)
	}
	return n * unit, nil
}

// Bytes formats a size for tables: whole KiB and MiB by their units.
func Bytes(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

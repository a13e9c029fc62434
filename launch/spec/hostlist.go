package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// ExpandHosts reads a list of hosts as batch systems write it: names separated by commas, with
// ranges in brackets whose numbers keep their leading zeros, such as a[01-04,7],b. More than
// maxHosts names are an error.
func ExpandHosts(list string) ([]string, error) {
	var hosts []string
	for _, pattern := range splitOutside(list) {
		names, err := expand(pattern, maxHosts-len(hosts))
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, names...)
	}
	return hosts, nil
}

// splitOutside splits at the commas that are not in brackets.
func splitOutside(list string) (parts []string) {
	depth, begin := 0, 0
	for i, c := range list {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			parts, begin = append(parts, list[begin:i]), i+1
		}
	}
	return append(parts, list[begin:])
}

// expand returns the names of a pattern; more than most are an error.
func expand(pattern string, most int) ([]string, error) {
	head, rest, ranged := strings.Cut(pattern, "[")
	if !ranged {
		if pattern == "" || strings.Contains(pattern, "]") {
			return nil, fmt.Errorf("%q is not a host's name", pattern)
		}
		if most < 1 {
			return nil, fmt.Errorf("more than %d hosts", maxHosts)
		}
		return []string{pattern}, nil
	}
	inner, tail, closed := strings.Cut(rest, "]")
	if !closed {
		return nil, fmt.Errorf("host %q: a [ without its ]", pattern)
	}
	var names []string
	for part := range strings.SplitSeq(inner, ",") {
		first, last, between := strings.Cut(part, "-")
		if !between {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 32)
		to, err2 := strconv.ParseUint(last, 10, 32)
		if err != nil || err2 != nil || to < from {
			return nil, fmt.Errorf("host %q: %q: want a number, or two as in 01-16", pattern, part)
		}
		for n := from; n <= to; n++ {
			// The rest of the pattern may have ranges as well.
			more, err := expand(fmt.Sprintf("%s%0*d%s", head, len(first), n, tail), most-len(names))
			if err != nil {
				return nil, err
			}
			names = append(names, more...)
		}
	}
	return names, nil
}

// Package pattern creates sets of messages: from a pattern file, from a generator or from a
// recorded trace.
//
// A pattern file has one message a line:
//
//	FROM TO SIZE [start=TIME] [name=NAME] [after=NAME,NAME...]
//
// FROM and TO are hosts of the platform, zippers, or virtual ranks (numbers). Messages named in
// after, on any line, must have finished before this one starts. # begins a comment.
package pattern

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/quantity"
	"github.com/leidenzipper/zipper/internal/lines"
)

// Read returns the messages of a pattern file. places has the host of each rank (platform.Places,
// or another placement). Errors name the line.
func Read(r io.Reader, places []string) ([]platform.Message, error) {
	var list []platform.Message
	waits := make(map[int][]string)
	named := make(map[string]int)
	err := lines.Each(r, func(line int, f []string) error {
		m, after, err := parse(f, places)
		if err != nil {
			return err
		}
		m.Line = line
		if m.Name == "" {
			m.Name = f[0] + ">" + f[1]
		} else if _, ok := named[m.Name]; ok {
			return fmt.Errorf("two messages are named %s", m.Name)
		} else {
			named[m.Name] = len(list)
		}
		if after != nil {
			waits[len(list)] = after
		}
		list = append(list, m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("the pattern has no messages")
	}
	for i := range list {
		for _, name := range waits[i] {
			k, ok := named[name]
			if !ok {
				return nil, fmt.Errorf("line %d: after: no message is named %q", list[i].Line, name)
			}
			if k == i {
				return nil, fmt.Errorf("line %d: the message waits for itself", list[i].Line)
			}
			list[i].After = append(list[i].After, k)
		}
	}
	if i := circular(list); i >= 0 {
		return nil, fmt.Errorf("line %d: message %s can never start: its dependencies have a cycle", list[i].Line, list[i].Name)
	}
	return list, nil
}

// circular returns the index of the first message in list that can never start, because it waits
// for messages that wait for each other in a cycle. It returns -1 if there is no such message.
func circular(list []platform.Message) int {
	waits, next := make([]int, len(list)), make([][]int, len(list))
	var free []int
	for i, m := range list {
		waits[i] = len(m.After)
		for _, k := range m.After {
			next[k] = append(next[k], i)
		}
		if waits[i] == 0 {
			free = append(free, i)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, i := range next[free[0]] {
			if waits[i]--; waits[i] == 0 {
				free = append(free, i)
			}
		}
	}
	return slices.IndexFunc(waits, func(n int) bool { return n > 0 })
}

func parse(f []string, places []string) (m platform.Message, after []string, err error) {
	if len(f) < 3 {
		return m, nil, errors.New("want FROM TO SIZE")
	}
	if f[0] == f[1] {
		return m, nil, fmt.Errorf("message from %s to itself", f[0])
	}
	if m.From, err = host(f[0], places); err != nil {
		return m, nil, err
	}
	if m.To, err = host(f[1], places); err != nil {
		return m, nil, err
	}
	if from, err := strconv.Atoi(f[0]); err == nil {
		if to, err := strconv.Atoi(f[1]); err == nil {
			m.Ranks = []int{from, to}
		}
	}
	m.SameHost = true // different ranks may share a host; equal names were refused
	if m.Bytes, err = quantity.Size(f[2]); err != nil {
		return m, nil, err
	}
	for _, option := range f[3:] {
		key, value, ok := strings.Cut(option, "=")
		switch {
		case !ok || value == "":
			return m, nil, fmt.Errorf("option %q: want key=value", option)
		case key == "start":
			if m.Start, err = quantity.Time(value); err != nil {
				return m, nil, err
			}
		case key == "name":
			m.Name = value
		case key == "after":
			after = strings.Split(value, ",")
		default:
			return m, nil, fmt.Errorf("unknown option %q: use start, name or after", key)
		}
	}
	return m, after, nil
}

// host returns the host of an endpoint s of a message in a pattern: places[n] if s is the rank n,
// or s itself as the name of a host, which the platform checks later.
func host(s string, places []string) (string, error) {
	r, err := strconv.Atoi(s)
	if err != nil || r < 0 {
		return s, nil
	}
	if r >= len(places) {
		return "", fmt.Errorf("rank %s: the platform has room for %d ranks", s, len(places))
	}
	return places[r], nil
}

// message returns a message of the given number of bytes from one rank to another. places has the
// host of each rank.
func message(from, to int, bytes *big.Rat, places []string) platform.Message {
	return platform.Message{Name: fmt.Sprintf("%d>%d", from, to), From: places[from], To: places[to], Bytes: bytes,
		SameHost: true, Ranks: []int{from, to}}
}

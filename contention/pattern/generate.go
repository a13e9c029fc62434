package pattern

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/quantity"
)

// Generators returns a description of each pattern that Generate knows, by its name.
func Generators() map[string]string {
	return map[string]string{
		"ring":     "every rank sends to the next, the last to the first, all at once",
		"chain":    "rank 0 sends to 1, then 1 to 2, and so on",
		"alltoall": "every rank sends to every other, all at once",
		"gather":   "every rank but root sends to root, all at once (n:1)",
		"scatter":  "root sends to every other rank, all at once (1:n)",
		"random":   "every rank sends to d others, chosen by seed, all at once",
	}
}

// maxMessages bounds the number of messages that a short argument can generate.
const maxMessages = 10_000_000

// Generate returns the messages of the pattern spec, "NAME:key=value,...", on the ranks whose hosts
// are places. Keys: size (default 1 MiB) and ranks (default all places) for all; root (0) for
// gather and scatter; d (1) and seed (1) for random.
func Generate(spec string, places []string) ([]platform.Message, error) {
	name, options, _ := strings.Cut(spec, ":")
	if _, ok := Generators()[name]; !ok {
		return nil, fmt.Errorf("unknown pattern %q: use ring, chain, alltoall, gather, scatter or random", name)
	}
	size, ints, err := settings(options, len(places))
	if err != nil {
		return nil, fmt.Errorf("pattern %s: %w", name, err)
	}
	n := ints["ranks"]
	switch {
	case n < 2 || n > len(places):
		return nil, fmt.Errorf("pattern %s: %d ranks: want 2 to %d (the room of the platform)", name, n, len(places))
	case ints["root"] >= n:
		return nil, fmt.Errorf("pattern %s: root %d of %d ranks", name, ints["root"], n)
	case name == "random" && (ints["d"] < 1 || ints["d"] >= n):
		return nil, fmt.Errorf("pattern random: d=%d: want 1 to %d", ints["d"], n-1)
	case name == "alltoall" && n*(n-1) > maxMessages || name == "random" && n*ints["d"] > maxMessages:
		return nil, fmt.Errorf("pattern %s: more than %d messages", name, maxMessages)
	}
	var list []platform.Message
	add := func(from, to int) { list = append(list, message(from, to, size, places)) }
	switch name {
	case "ring":
		for i := range n {
			add(i, (i+1)%n)
		}
	case "chain":
		for i := range n - 1 {
			add(i, i+1)
			if i > 0 {
				list[i].After = []int{i - 1}
			}
		}
	case "alltoall":
		for i := range n {
			for k := 1; k < n; k++ {
				add(i, (i+k)%n)
			}
		}
	case "gather", "scatter":
		for i := range n {
			if i == ints["root"] {
				continue
			}
			if name == "gather" {
				add(i, ints["root"])
			} else {
				add(ints["root"], i)
			}
		}
	case "random":
		rng := rand.New(rand.NewPCG(uint64(ints["seed"]), 0))
		for i := range n {
			for _, k := range rng.Perm(n - 1)[:ints["d"]] {
				add(i, (i+1+k)%n)
			}
		}
	}
	return list, nil
}

func settings(options string, places int) (*big.Rat, map[string]int, error) {
	size := big.NewRat(1<<20, 1)
	ints := map[string]int{"ranks": places, "root": 0, "d": 1, "seed": 1}
	for _, o := range strings.Split(options, ",") {
		if o == "" {
			continue
		}
		key, value, _ := strings.Cut(o, "=")
		var err error
		if key == "size" {
			if size, err = quantity.Size(value); err != nil {
				return nil, nil, err
			}
			continue
		}
		if _, ok := ints[key]; !ok {
			return nil, nil, fmt.Errorf("unknown setting %q: use size, ranks, root, d or seed", key)
		}
		if ints[key], err = strconv.Atoi(value); err != nil || ints[key] < 0 {
			return nil, nil, fmt.Errorf("%s=%s: want a number of 0 or more", key, value)
		}
	}
	return size, ints, nil
}

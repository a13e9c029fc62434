package contend

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/leidenzipper/zipper/bench/transfer"
	"github.com/leidenzipper/zipper/contention/platform"
)

// Kind is the kind of a pattern.
type Kind string

// Kinds of patterns. In all of them a host sends to at most d others, chosen at random.
const (
	Any   Kind = "any"   // to all hosts
	Cross Kind = "cross" // to hosts of other clusters: both directions at once
	Local Kind = "local" // to hosts of the own cluster
)

// Pattern has messages that start together.
type Pattern struct {
	Kind Kind
	// D is the number of messages from each host.
	D int
	// Seed is the seed from which Random made the pattern.
	Seed     uint64
	Messages []transfer.Message
}

// Name returns a name that identifies the pattern.
func (p *Pattern) Name() string { return fmt.Sprintf("%s d=%d seed=%d", p.Kind, p.D, p.Seed) }

// Random makes a pattern of a site. The pair of hosts decides which zipper a message takes, as in
// package platform.
func Random(s *Site, kind Kind, d int, seed uint64, bytes int) Pattern {
	p := Pattern{Kind: kind, D: d, Seed: seed}
	rng := rand.New(rand.NewPCG(seed, 0x636f6e74656e64))
	for ci, c := range s.Clusters {
		for i, from := range c.Hosts {
			var others []transfer.Message
			for cj, o := range s.Clusters {
				for j, to := range o.Hosts {
					via := transfer.Direct
					if ci != cj {
						via = (i + j) % len(s.Zippers)
					}
					if from == to || kind == Cross && ci == cj || kind == Local && ci != cj {
						continue
					}
					others = append(others, transfer.Message{From: from, To: to, Via: via, Bytes: bytes})
				}
			}
			rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
			p.Messages = append(p.Messages, others[:min(d, len(others))]...)
		}
	}
	return p
}

// model returns the pattern for package predict.
func (p *Pattern) model() (list []platform.Message) {
	for _, m := range p.Messages {
		list = append(list, between(m.From, m.To, m.Bytes, 0))
	}
	return list
}

// between returns a message for package predict, which starts after some seconds.
func between(from, to string, bytes int, start float64) platform.Message {
	return platform.Message{Name: from + ">" + to, From: from, To: to, Bytes: big.NewRat(int64(bytes), 1),
		Start: big.NewRat(int64(math.Round(1e6*start)), 1e6)}
}

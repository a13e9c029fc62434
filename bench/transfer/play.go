package transfer

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/mmpi/engine"
)

// Step is a message of a program that hosts play. It starts when earlier ones, which its sender has
// sent or received, are over: received, or sent in the sense of MPI_Send. The steps of a host start
// in their order.
type Step struct {
	Message
	After []int // indices of earlier steps
}

// played is a host's part of a program.
type played struct {
	// Base is the id of the first message, and the tag of all.
	Base     int    `json:"base"`
	Sends    []cue  `json:"sends"`
	Receives []part `json:"receives"`
}

type cue struct {
	part
	After []int `json:"after"` // ids
}

// Play lets the hosts play a program of messages through forwarders and returns how long it took,
// in seconds.
func (s *Session) Play(steps []Step) (float64, error) {
	parts := make(map[*remote]*played)
	base := s.next
	at := func(r *remote) *played {
		if parts[r] == nil {
			parts[r] = &played{Base: base}
		}
		return parts[r]
	}
	for i, m := range steps {
		from, to := s.agents[m.From], s.agents[m.To]
		if from == nil || to == nil || m.Via == Direct || from.rank < 0 || to.rank < 0 || from.Cluster == to.Cluster {
			return 0, fmt.Errorf("step %d: a message from %s to %s cannot take a forwarder", i, m.From, m.To)
		}
		p := part{ID: base + i, Via: m.Via, Bytes: max(1, m.Bytes)}
		c := cue{part: p}
		c.Peer, p.Peer = to.rank, from.rank
		for _, a := range m.After {
			if a < 0 || a >= i || steps[a].From != m.From && steps[a].To != m.From {
				return 0, fmt.Errorf("step %d: %s does not take part in step %d, so it cannot wait for its end", i, m.From, a)
			}
			c.After = append(c.After, base+a)
		}
		at(from).Sends = append(at(from).Sends, c)
		at(to).Receives = append(at(to).Receives, p)
	}
	s.next += len(steps)
	questions := make(map[*remote]request)
	for r, p := range parts {
		questions[r] = request{Play: p}
	}
	if _, err := s.ask(questions); err != nil { // ready
		return 0, err
	}
	for r := range questions {
		questions[r] = request{Go: true}
	}
	answers, err := s.ask(questions)
	took := 0.0
	for r, a := range answers {
		s.cpu[r.Name] = a.CPU
		took = max(took, a.Took)
	}
	return took, err
}

// player plays an agent's part.
type player struct {
	m *mover
	p *played
	// data is the content of every message, because no program reads it.
	data []byte

	mu sync.Mutex
	// over has the messages that are over.
	over map[int]bool
	// next is the index of the next send.
	next int
	// left is the number of messages that are not over.
	left    int
	waiting []map[int][]part
	// pending has operations in progress by forwarder.
	pending [][]waiting
	err     error
}

func (m *mover) rehearse(p *played) error {
	x := &player{m: m, p: p, over: make(map[int]bool), left: len(p.Sends) + len(p.Receives),
		pending: make([][]waiting, len(m.engines))}
	largest := 1
	for range m.engines {
		x.waiting = append(x.waiting, make(map[int][]part))
	}
	check := func(p part) error {
		if p.Bytes < 1 || p.Bytes > maxMessage || p.Via < 0 || p.Via >= len(m.engines) {
			return fmt.Errorf("message %d: cannot send %d bytes by forwarder %d of %d", p.ID, p.Bytes, p.Via, len(m.engines))
		}
		largest = max(largest, p.Bytes)
		return nil
	}
	for _, c := range p.Sends {
		if err := check(c.part); err != nil {
			return err
		}
	}
	for _, r := range p.Receives {
		if err := check(r); err != nil {
			return err
		}
		x.waiting[r.Via][r.Peer] = append(x.waiting[r.Via][r.Peer], r)
	}
	x.data = make([]byte, largest)
	for _, w := range x.waiting {
		for peer := range w {
			for range ahead {
				x.post(w, peer)
			}
		}
	}
	m.player = x
	return x.err
}

// post posts the next receive from a peer.
func (x *player) post(m map[int][]part, peer int) {
	if len(m[peer]) == 0 || x.err != nil {
		return
	}
	r := m[peer][0]
	m[peer] = m[peer][1:]
	cell := new(engine.Cell)
	e := x.m.engines[r.Via]
	x.err = e.Irecv(e.comm, engine.KindP2P, x.data[:r.Bytes], peer, x.p.Base, cell)
	x.pending[r.Via] = append(x.pending[r.Via], waiting{r.ID, cell, func(id int, err error) {
		x.done(id, err)
		x.post(m, peer)
		x.send()
	}})
}

func (x *player) done(id int, err error) {
	if x.over[id], x.left = true, x.left-1; err != nil && x.err == nil {
		x.err = fmt.Errorf("message %d: %w", id, err)
	}
}

// send starts all sends that may start.
func (x *player) send() {
	for ; x.next < len(x.p.Sends) && x.err == nil; x.next++ {
		c := x.p.Sends[x.next]
		for _, id := range c.After {
			if !x.over[id] {
				return
			}
		}
		e, cell := x.m.engines[c.Via], new(engine.Cell)
		if x.err = e.Isend(e.comm, engine.KindP2P, x.data[:c.Bytes], c.Peer, x.p.Base, false, cell); x.err != nil {
			return
		}
		if cell.Done() {
			x.done(c.ID, cell.Err())
			continue
		}
		x.pending[c.Via] = append(x.pending[c.Via], waiting{c.ID, cell, func(id int, err error) {
			x.done(id, err)
			x.send()
		}})
	}
}

func (x *player) play() (answer, error) {
	begin := time.Now()
	deadline := begin.Add(playPatience)
	x.mu.Lock()
	x.send()
	x.mu.Unlock()
	var wg sync.WaitGroup
	for k := range x.m.engines {
		wg.Go(func() {
			for x.step(k) && time.Now().Before(deadline) {
				// The turn is short, because the end of the last message at another forwarder does
				// not wake it.
				x.m.engines[k].Progress(playTurn)
			}
		})
	}
	wg.Wait()
	if x.err == nil && x.left > 0 {
		x.err = errors.New(strconv.Itoa(x.left) + " messages did not finish in time")
	}
	took := time.Since(begin).Seconds()
	used, err := processorTime(unix.CLOCK_PROCESS_CPUTIME_ID)
	return answer{Took: took, CPU: used.Seconds()}, errors.Join(x.err, err)
}

// step handles operations by one forwarder that are over. It returns false if no message of the
// whole part is left, or after an error.
func (x *player) step(k int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.pending[k]
	x.pending[k] = nil // callbacks add to it
	for i, w := range list {
		if !w.cell.Done() {
			x.pending[k] = append(x.pending[k], list[i])
			continue
		}
		w.over(w.id, w.cell.Err())
	}
	return x.left > 0 && x.err == nil
}

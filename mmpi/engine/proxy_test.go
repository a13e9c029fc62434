package engine

import (
	"bufio"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// proxy is a network between ranks and a forwarder that can be cut.
type proxy struct {
	t  testing.TB
	ln net.Listener

	mu     sync.Mutex
	target string
	dead   bool                  // whether the proxy refuses connections
	conns  map[net.Conn]net.Conn // the accepted connections, with those to the target
	bytes  int64                 // the number of bytes carried so far
	taken  int                   // the number of connections accepted so far

	armed [2]*event // the next event on the way to the target, and on the way back
}

func newProxy(t testing.TB, target string) *proxy {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, ln: ln, target: target, conns: map[net.Conn]net.Conn{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			a, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.carry(a) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		p.kill()
		wg.Wait()
	})
	return p
}

func (p *proxy) carry(a net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	b, err := net.Dial("tcp", target)
	if err != nil {
		a.Close()
		return
	}
	p.mu.Lock()
	if p.dead {
		a.Close()
		b.Close()
	} else {
		p.conns[a] = b
		p.taken++
	}
	p.mu.Unlock()
	var wg sync.WaitGroup
	for way, d := range [][2]net.Conn{{a, b}, {b, a}} {
		wg.Go(func() {
			if err := p.bring(way, d[0], d[1]); err != io.EOF { // a half-closed link still carries the other direction
				d[0].Close()
			}
			d[1].Close()
		})
	}
	wg.Wait()
	p.mu.Lock()
	delete(p.conns, a)
	p.mu.Unlock()
	a.Close()
	b.Close()
}

// bring carries frames one way, until that ends or is cut.
func (p *proxy) bring(way int, from, to net.Conn) error {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		head, err := in.Peek(wire.HeaderLen)
		if err != nil {
			return err
		}
		h, err := wire.ParseHeader(head)
		if err != nil {
			return err
		}
		n := wire.HeaderLen + int(h.Length)
		p.mu.Lock()
		p.bytes += int64(n)
		ev := p.armed[way]
		if ev != nil && ev.Only != 0 && ev.Only != h.Type {
			ev = nil
		}
		if ev != nil {
			if ev.Skip--; ev.Skip >= 0 {
				ev = nil
			} else {
				p.armed[way] = nil
			}
		}
		p.mu.Unlock()
		if ev == nil {
			if _, err := io.CopyN(to, in, int64(n)); err != nil {
				return err
			}
			continue
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(in, frame); err != nil {
			return err
		}
		out := ev.do(frame, func() []byte { return nextFrame(from, in) })
		if len(out) > 0 {
			_, err = to.Write(out)
		}
		p.mu.Lock()
		ev.done(h.Type)
		p.mu.Unlock()
		if err != nil || out == nil {
			return errors.Join(err, errCut)
		}
	}
}

var errCut = errors.New("cut")

// nextFrame reads one more frame, if it comes soon.
func nextFrame(from net.Conn, in *bufio.Reader) []byte {
	_ = from.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	defer func() { _ = from.SetReadDeadline(time.Time{}) }()
	head, err := in.Peek(wire.HeaderLen)
	if err != nil {
		return nil
	}
	h, err := wire.ParseHeader(head)
	if err != nil {
		return nil
	}
	frame := make([]byte, wire.HeaderLen+int(h.Length))
	_ = from.SetReadDeadline(time.Now().Add(time.Second))
	n, _ := io.ReadFull(in, frame)
	return frame[:n]
}

// arm sets the next event on its way through the proxy. disarm removes an event that has not
// happened yet.
func (p *proxy) arm(ev *event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed[ev.Way] = ev
}

func (p *proxy) disarm(way int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed[way] = nil
}

// cut ends one link in the middle of its traffic, and waits for the next.
func (p *proxy) cut(r *rand.Rand) {
	p.mu.Lock()
	before := p.taken
	defer func() {
		for end := time.Now().Add(20 * time.Second); p.links() == before && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}()
	defer p.mu.Unlock()
	n := r.IntN(max(1, len(p.conns)))
	for a, b := range p.conns {
		if n--; n < 0 {
			a.Close()
			b.Close()
			return
		}
	}
}

// kill ends all links, and no new ones come through until revive.
func (p *proxy) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	for a, b := range p.conns {
		a.Close()
		b.Close()
	}
}

// spoil sends a rank bytes that no rank has sent.
func (p *proxy) spoil(t *testing.T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a := range p.conns {
		if _, err := a.Write(make([]byte, 1000)); err == nil { // a link that has just ended gives an error
			return
		}
	}
}

// lead makes the proxy carry new links to another address.
func (p *proxy) lead(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = to
}

func (p *proxy) revive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = false
}

func (p *proxy) links() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

func (p *proxy) carried() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

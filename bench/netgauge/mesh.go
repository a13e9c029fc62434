package netgauge

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// mesh is an endpoint with one stream to every other process.
type mesh struct {
	rank  int
	conns []net.Conn // nil for the own rank
}

func (m *mesh) Rank() int { return m.rank }
func (m *mesh) Size() int { return len(m.conns) }

func (m *mesh) Send(to int, b []byte) error {
	_, err := m.conns[to].Write(b)
	return err
}

func (m *mesh) Recv(from int, b []byte) error {
	_, err := io.ReadFull(m.conns[from], b)
	return err
}

func (m *mesh) Close() error {
	for _, c := range m.conns {
		if c != nil {
			c.Close()
		}
	}
	return nil
}

// started runs a blocking operation in a goroutine, because the kernel moves streams anyway.
type started chan error

func (s started) Wait() error { return <-s }

func start(f func() error) Pending {
	s := make(started, 1)
	go func() { s <- f() }()
	return s
}

func (m *mesh) Isend(to int, b []byte) (Pending, error) {
	return start(func() error { return m.Send(to, b) }), nil
}

func (m *mesh) Irecv(from int, b []byte) (Pending, error) {
	return start(func() error { return m.Recv(from, b) }), nil
}

// openMesh connects all pairs: each process listens at its own address, dials the processes before
// it and sends them its rank.
func openMesh(ctx context.Context, network string, p Place) (Endpoint, error) {
	m := &mesh{rank: p.Rank, conns: make([]net.Conn, len(p.Addrs))}
	ok := false
	defer func() {
		if !ok {
			m.Close()
		}
	}()
	lc := net.ListenConfig{}
	l, err := lc.Listen(ctx, network, p.Addrs[p.Rank])
	if err != nil {
		return nil, err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for r := range p.Rank {
		c, err := dial(ctx, network, p.Addrs[r])
		if err != nil {
			return nil, fmt.Errorf("rank %d at %s: %w", r, p.Addrs[r], err)
		}
		m.conns[r] = c
		if err := binary.Write(c, binary.LittleEndian, uint32(p.Rank)); err != nil {
			return nil, err
		}
	}
	for range len(p.Addrs) - 1 - p.Rank {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("not all processes have connected: %w", ctx.Err())
			}
			return nil, err
		}
		c.SetReadDeadline(time.Now().Add(helloTime))
		var r uint32
		if err := binary.Read(c, binary.LittleEndian, &r); err != nil || r <= uint32(p.Rank) ||
			int(r) >= len(p.Addrs) || m.conns[r] != nil {
			c.Close()
			return nil, fmt.Errorf("a process that does not belong to this measurement connected from %s", c.RemoteAddr())
		}
		c.SetReadDeadline(time.Time{})
		m.conns[r] = c
	}
	ok = true
	return m, nil
}

// dial connects to a process, which need not exist yet.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{}
	return retryDial(ctx, func() (net.Conn, error) { return d.DialContext(ctx, network, addr) })
}

// retryDial dials until the other end answers or ctx ends.
func retryDial[C any](ctx context.Context, dial func() (C, error)) (C, error) {
	for {
		c, err := dial()
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return c, err
		case <-time.After(dialPause):
		}
	}
}

// acceptOne accepts one connection on a listener and closes the listener, at the latest when ctx
// ends.
func acceptOne[C any](ctx context.Context, ln interface {
	Accept() (C, error)
	Close() error
}) (C, error) {
	defer ln.Close()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	c, err := ln.Accept()
	if err != nil {
		err = first(ctx.Err(), err)
	}
	return c, err
}

func tcpModule() Module {
	return Module{Name: "tcp", About: "TCP sockets; addresses host:port", Offers: Reliable | Nonblocking | Many,
		Open: func(ctx context.Context, p Place) (Endpoint, error) { return openMesh(ctx, "tcp", p) }}
}

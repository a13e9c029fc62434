package e2e

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// tamperer is a proxy between ranks and their forwarder. It records all frames, and changes them as
// edit does.
type tamperer struct {
	Addr string

	mu   sync.Mutex
	seen bytes.Buffer
	// edit is protected by mu; nil: frames are not changed.
	edit func(toRank bool, h wire.Header, frame []byte) [][]byte
}

// tamper starts a tamperer in front of a forwarder.
func tamper(t *testing.T, forwarder string, edit func(toRank bool, h wire.Header, frame []byte) [][]byte) *tamperer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &tamperer{Addr: ln.Addr().String(), edit: edit}
	var conns sync.WaitGroup
	t.Cleanup(func() { ln.Close(); conns.Wait() })
	conns.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", forwarder)
			if err != nil {
				in.Close()
				continue
			}
			for _, way := range []struct {
				from, to net.Conn
				toRank   bool
			}{{in, out, false}, {out, in, true}} {
				conns.Go(func() {
					m.carry(way.from, way.to, way.toRank)
					in.Close()
					out.Close()
				})
			}
		}
	})
	return m
}

// carry passes frames from one end to the other until one of them closes.
func (m *tamperer) carry(from io.Reader, to io.Writer, toRank bool) {
	head := make([]byte, wire.HeaderLen)
	for {
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		h, err := wire.ParseHeader(head)
		if err != nil {
			return
		}
		frame := append(bytes.Clone(head), make([]byte, h.Length)...)
		if _, err := io.ReadFull(from, frame[wire.HeaderLen:]); err != nil {
			return
		}
		m.mu.Lock()
		m.seen.Write(frame)
		out := [][]byte{frame}
		if m.edit != nil {
			out = m.edit(toRank, h, frame)
		}
		m.mu.Unlock()
		for _, f := range out {
			if _, err := to.Write(f); err != nil {
				return
			}
		}
	}
}

// Seen returns all bytes so far, in both directions.
func (m *tamperer) Seen() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.seen.Bytes())
}

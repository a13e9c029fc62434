// Package handshaketest lets tests do what any process that reaches a forwarder's port can do:
// connect, read frames and answer a Challenge, without an engine.
package handshaketest

import (
	"crypto/rand"
	"io"
	"net"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Connect opens a connection from an address of this host. The connection ends by itself after
// limit.
func Connect(from, to string, limit time.Duration) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: limit}
	c, err := d.Dial("tcp", to)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(limit))
	}
	return c, err
}

// ReadFrame reads a frame; its payload follows the body.
func ReadFrame(r io.Reader) (wire.Header, []byte, error) {
	var head [wire.HeaderLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return wire.Header{}, nil, err
	}
	h, err := wire.ParseHeader(head[:])
	if err != nil {
		return h, nil, err
	}
	body := make([]byte, h.Length)
	_, err = io.ReadFull(r, body)
	return h, body, err
}

// JoinFrame reads the Challenge of a connection and returns the Join that answers it.
func JoinFrame(r io.Reader, id handshake.Identity) (frame []byte, err error) {
	var fresh [wire.NonceLen]byte
	if _, err := rand.Read(fresh[:]); err != nil {
		return nil, err
	}
	j, err := handshake.NewJoiner(id, fresh)
	if err != nil {
		return nil, err
	}
	h, body, err := ReadFrame(r)
	if err != nil {
		return nil, err
	}
	j.HandleMessage(h, body)
	err = handshake.Drive(j, func(f []byte) error { frame = f; return nil }, func(e handshake.Event) error {
		if e.Err != nil { // a nil *Refused in an error would be an error
			return e.Err
		}
		return nil
	})
	return frame, err
}

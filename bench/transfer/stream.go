package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// drain receives a stream.
func (m *mover) drain(p part, deadline time.Time) error {
	select {
	case c := <-m.stream(uint64(p.ID)):
		defer c.Close()
		c.SetDeadline(deadline)
		n, err := io.CopyN(io.Discard, c, int64(p.Bytes))
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", n, err)
		}
		return nil
	case <-time.After(time.Until(deadline)):
		return errors.New("no connection arrived")
	}
}

// stream returns the channel by which the connection of a message is passed on.
func (m *mover) stream(id uint64) chan net.Conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.arrived[id]
	if c == nil {
		c = make(chan net.Conn, 1)
		m.arrived[id] = c
	} else {
		delete(m.arrived, id) // both sides have it
	}
	return c
}

func (m *mover) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			var b [8]byte
			c.SetDeadline(time.Now().Add(streamPatience))
			if _, err := io.ReadFull(c, b[:]); err != nil {
				c.Close()
				return
			}
			select {
			case m.stream(binary.LittleEndian.Uint64(b[:])) <- c:
			default:
				c.Close() // a second one for the same message, which is another program's
			}
		}()
	}
}

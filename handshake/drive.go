package handshake

import "github.com/leidenzipper/zipper/internal/wire"

// Machine is one end of an exchange: an Acceptor, Joiner, Bridger or Meeting.
type Machine interface {
	// HandleMessage takes a frame from the other end. body is not kept.
	HandleMessage(h wire.Header, body []byte)
	// NextEvent takes the next event; ok is false when there is none until the next call into the
	// machine.
	NextEvent() (e Event, ok bool)
}

// Drive takes the machine's events until there is none: frames go to send, all else to on. An error
// of either ends it at once and is returned; events that are left wait. on may call the machine.
func Drive(m Machine, send func(frame []byte) error, on func(Event) error) error {
	for {
		e, ok := m.NextEvent()
		if !ok {
			return nil
		}
		var err error
		if e.Kind == Send {
			err = send(e.Frame)
		} else {
			err = on(e)
		}
		if err != nil {
			return err
		}
	}
}

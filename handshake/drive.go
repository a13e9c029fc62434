package handshake

import "github.com/leidenzipper/zipper/internal/wire"

// Machine is one end of an exchange: an Acceptor, Joiner, Bridger, Teller or Meeting.
type Machine interface {
	// HandleMessage handles a frame from the other end. It does not keep body.
	HandleMessage(h wire.Header, body []byte)
	// NextEvent takes the next event; ok is false when there is none until the next call into the
	// machine.
	NextEvent() (e Event, ok bool)
}

// Drive takes the machine's events until none is left: frames go to send, all other events to on.
// An error of either ends it at once and is returned; the remaining events stay. on may call the
// machine.
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

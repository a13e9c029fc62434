package tcp

import (
	"testing"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/transport/transporttest"
)

func TestConformance(t *testing.T) {
	transporttest.Run(t, transporttest.Setup{
		Can: transporttest.Listening | transporttest.Packeted | transporttest.Homed | transporttest.Distant | transporttest.Piper,
		Open: func(t *testing.T) (transport.Listener, transport.Dialer) {
			ln, err := Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			return ln, Dialer{}
		},
	})
}

// pair makes a link; its ends are closed with the test.
func pair(t *testing.T) (dialled, accepted transport.Link) {
	t.Helper()
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if dialled, err = (Dialer{}).Dial(t.Context(), ln.Addr()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close() })
	if accepted, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return dialled, accepted
}

package tcp

import (
	"testing"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/transport/transporttest"
)

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) (transport.Listener, transport.Dialer) {
		ln, err := Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return ln, Dialer{}
	})
}

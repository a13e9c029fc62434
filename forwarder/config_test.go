package forwarder

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/transport"
)

func TestNiceRange(t *testing.T) {
	for _, n := range []int{-21, 20} {
		if _, err := New(Config{Listeners: make([]transport.Listener, 1), Nice: n}); err == nil {
			t.Errorf("%d was taken", n)
		}
	}
}

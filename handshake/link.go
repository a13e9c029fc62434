package handshake

import (
	"crypto/rand"
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// CheckHeader accepts the headers of frames that belong to any join exchange; the exchange decides
// which of them may come.
func CheckHeader(h wire.Header) error {
	switch h.Type {
	case wire.TypeJoin, wire.TypeRefuse, wire.TypePong, wire.TypePing, wire.TypeChallenge, wire.TypeBridge,
		wire.TypeReady, wire.TypeProof, wire.TypeHalf, wire.TypeRailState, wire.TypeLost, wire.TypeNotice:
		return nil
	}
	return fmt.Errorf("%v frame before the job is complete", h.Type)
}

// Nonce returns fresh random bytes for an exchange.
func Nonce() (b [wire.NonceLen]byte) {
	_, _ = rand.Read(b[:]) // never fails
	return b
}

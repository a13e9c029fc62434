package handshake

import (
	"crypto/rand"
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// MayCome lets frames through that belong to some join exchange; the exchange knows which of them
// may come.
func MayCome(h wire.Header) error {
	switch h.Type {
	case wire.TypeJoin, wire.TypeRefuse, wire.TypePong, wire.TypePing, wire.TypeChallenge, wire.TypeBridge,
		wire.TypeReady, wire.TypeProof, wire.TypeHalf, wire.TypeRailState, wire.TypeNotice:
		return nil
	}
	return fmt.Errorf("%v frame before the job is complete", h.Type)
}

// Nonce returns fresh random bytes for an exchange.
func Nonce() (b [wire.NonceLen]byte) {
	_, _ = rand.Read(b[:]) // never fails
	return b
}

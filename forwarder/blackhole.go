package forwarder

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// A path may let small packets pass and drop large ones without a word: what a job gathers with is
// small, so it would begin, and hang at its first large message. So both ends of a new link between
// forwarders first send a Ping of full packets, which TCP does not let be broken up on the way, and
// no end says that it is ready before the answer is there.

// sendLarge asks whether large packets get to the other end. With f.mu.
func (br *bridge) sendLarge(p *peer) {
	f := br.f
	_ = p.sendFrame(frame(wire.TypePing, padding{}))
	f.cfg.clock.AfterFunc(largeAnswer, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if br.large || br.first() != p || br.job.state != gathering {
			return
		}
		f.log.Error("large packets do not get to another forwarder", zap.String("job", br.job.id),
			zap.String("forwarder", br.addr))
		f.giveUp(br.job, wire.RefuseTimeout, fmt.Sprintf("job %q: small packets get from this forwarder to the forwarder %s, "+
			"large ones%s do not: something on the way drops them without a word (an MTU black hole); on both hosts "+
			"lower the MTU of the interface there (ip link set dev NAME mtu 1400), or set sysctl net.ipv4.tcp_mtu_probing=1",
			br.job.id, br.addr, size(p.conn.Link())))
	})
}

// size is how long full packets of a link are.
func size(l transport.Link) string {
	if p, ok := l.(transport.Packeted); ok && p.Packet() > 0 {
		return fmt.Sprintf(" (%d bytes of TCP's)", p.Packet())
	}
	return ""
}

// padding is the body of a Ping that fills packets.
type padding struct{}

// Append adds it to b.
func (padding) Append(b []byte) []byte { return append(b, make([]byte, wire.MaxPing)...) }

package jobforwarder

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/internal/transport"
)

// NAT says whether a forwarder lets its host's kernel forward connections between ranks. It is the
// value of a command's flag, of which --nat alone means --nat=on.
type NAT string

// Values of NAT.
const (
	NATAuto NAT = "auto" // The kernel forwards if it can; otherwise the forwarder relays.
	NATOn   NAT = "on"   // The kernel forwards; the forwarder fails if it cannot.
	NATOff  NAT = "off"  // The forwarder relays everything.
)

// Set implements flag.Value.
func (m *NAT) Set(s string) error {
	switch s {
	case "true": // the flag without a value
		*m = NATOn
	case "false":
		*m = NATOff
	case string(NATAuto), string(NATOn), string(NATOff):
		*m = NAT(s)
	default:
		return errors.New("want auto, on or off")
	}
	return nil
}

// String implements flag.Value.
func (m *NAT) String() string { return string(*m) }

// Get implements flag.Getter.
func (m *NAT) Get() any { return string(*m) }

// IsBoolFlag allows the flag without a value.
func (m *NAT) IsBoolFlag() bool { return true }

// Fits returns an error if the kernel must forward connections of jobs with a protocol that relays
// everything.
func (m NAT) Fits(protocol string) error {
	if m == NATOn && protocol == forwarder.Classic {
		return errors.New("--nat=on is not supported with --protocol classic, which relays everything")
	}
	return nil
}

// Apply sets the fields of cfg that say whether the kernel forwards connections, and logs the
// reason if it does not although it should. The closer, which is never nil, must be closed after
// the forwarder's end. An error means that the kernel must forward but cannot.
func (m NAT) Apply(cfg *forwarder.Config) (io.Closer, error) {
	if m == NATOff {
		cfg.NATOff = "--nat=off"
		return nothing{}, nil
	}
	if err := m.Fits(cfg.Protocol); err != nil {
		return nothing{}, err
	}
	if cfg.Protocol == forwarder.Classic {
		cfg.NATOff = "with --protocol classic everything is relayed"
		return nothing{}, nil
	}
	at := served(cfg.Listeners)
	table, err := nat.Open(at...)
	if err == nil && m == NATOn {
		if one := unforwarded(at, table); one.IsValid() {
			return nothing{}, fmt.Errorf("--nat=on: this host does not forward packets for %v: is IP forwarding on for both versions of IP? (docs/howto/direct-links.md)", one)
		}
	}
	switch {
	case err == nil:
		cfg.NAT = table
		return table, nil
	case m == NATOn:
		return nothing{}, fmt.Errorf("--nat: %w", err)
	}
	cfg.NATOff = err.Error()
	cfg.Log.Info("all messages are relayed by this process; connections in the kernel would be faster (docs/howto/direct-links.md)",
		zap.String("reason", cfg.NATOff))
	return nothing{}, nil
}

// advises logs, for the user of a forwarder that serves one job, why the kernel forwards no
// connections although it may. It does that only if this process has the privileges, because other
// users can change nothing.
func (m NAT) advises(cfg *forwarder.Config, log *zap.Logger, privileged bool) {
	if m == NATAuto && cfg.NATOff != "" && cfg.Protocol != forwarder.Classic && privileged {
		log.Warn("all messages are relayed by the forwarder in this process; connections in the kernel would be faster, and --nat=off asks for none (docs/howto/direct-links.md)",
			zap.String("reason", cfg.NATOff))
	}
}

// served returns the addresses of listeners at which ways may begin. A listener on all addresses
// has none of its own.
func served(listeners []transport.Listener) (at []netip.Addr) {
	for _, ln := range listeners {
		a, err := netip.ParseAddrPort(ln.Addr())
		if err == nil && !a.Addr().IsUnspecified() && !a.Addr().IsLinkLocalUnicast() {
			at = append(at, a.Addr().Unmap().WithZone(""))
		}
	}
	return at
}

// unforwarded returns the first address at which no ways can begin, because this host does not
// forward packets of that version of IP, or an invalid one.
func unforwarded(at []netip.Addr, kernel interface{ Forwards(netip.Addr) bool }) (first netip.Addr) {
	if i := slices.IndexFunc(at, func(a netip.Addr) bool { return !kernel.Forwards(a) }); i >= 0 {
		first = at[i]
	}
	return first
}

// nothing is a closer of nothing.
type nothing struct{}

func (nothing) Close() error { return nil }

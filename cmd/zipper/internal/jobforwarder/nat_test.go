package jobforwarder

import (
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/launch"
)

// TestKernelCannotForwardOnOneHost checks that --nat=on fails, and --nat=auto does not, if all
// ranks run on one host.
func TestKernelCannotForwardOnOneHost(t *testing.T) {
	w := launch.Wanted{Job: "j", Secret: "s", Local: true}
	if _, err := start(w, zap.NewNop(), NATOn); err == nil || !strings.Contains(err.Error(), "use --nat=auto") {
		t.Errorf("--nat=on: %v", err)
	}
	f, err := start(w, zap.NewNop(), NATAuto)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// TestKernelCannotForwardClassic checks that --nat=on fails with the protocol that relays
// everything, and that --nat=auto gives that as the reason.
func TestKernelCannotForwardClassic(t *testing.T) {
	cfg := forwarder.Config{Protocol: forwarder.Classic, Log: zap.NewNop()}
	if _, err := NATOn.Apply(&cfg); err == nil || !strings.Contains(err.Error(), "not supported with --protocol classic") {
		t.Errorf("--nat=on: %v", err)
	}
	if _, err := NATAuto.Apply(&cfg); err != nil || !strings.Contains(cfg.NATOff, "--protocol classic") {
		t.Errorf("--nat=auto: %q, %v", cfg.NATOff, err)
	}
}

// onlyIPv4 is a kernel that forwards packets of IPv4.
type onlyIPv4 struct{}

func (onlyIPv4) Forwards(at netip.Addr) bool { return at.Is4() }

// at is a listener at an address.
type at struct {
	transport.Listener
	addr string
}

func (l at) Addr() string { return l.addr }

// TestEachListenerMustBeForwarded checks that an address is found for whose version of IP the host
// forwards no packets.
func TestEachListenerMustBeForwarded(t *testing.T) {
	for addr, want := range map[string]string{"192.0.2.1:1": "", "[::ffff:192.0.2.1]:1": "", "[2001:db8::1]:1": "2001:db8::1",
		"[::]:1": "", "[fe80::1%eth0]:1": "", "verbs:x": ""} {
		list := []transport.Listener{at{addr: "192.0.2.2:1"}, at{addr: addr}}
		if got := unforwarded(served(list), onlyIPv4{}); got.IsValid() != (want != "") || want != "" && got.String() != want {
			t.Errorf("%s: %v, want %q", addr, got, want)
		}
	}
}

// TestUserIsAdvisedIfPrivileged checks that the user of a job's own forwarder gets the reason why
// messages are relayed, as a warning, only if this process could be allowed to have the kernel
// forward them.
func TestUserIsAdvisedIfPrivileged(t *testing.T) {
	for _, c := range []struct {
		mode       NAT
		off        string
		privileged bool
		want       int
	}{
		{NATAuto, "IP forwarding is off", true, 1},
		{NATAuto, "IP forwarding is off", false, 0},
		{NATAuto, "", true, 0},
		{NATOff, "--nat=off", true, 0},
	} {
		core, logs := observer.New(zap.WarnLevel)
		c.mode.advises(&forwarder.Config{NATOff: c.off}, zap.New(core), c.privileged)
		if got := logs.FilterField(zap.String("reason", c.off)).Len(); got != c.want || logs.Len() != c.want {
			t.Errorf("%+v: %d warnings, want %d", c, logs.Len(), c.want)
		}
	}
}

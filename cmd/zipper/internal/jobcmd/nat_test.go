package jobcmd

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/jobforwarder"
	"github.com/leidenzipper/zipper/forwarder"
)

// TestNATFlag checks the values of --nat, of which none means on, and that the command line has
// precedence over the file.
func TestNATFlag(t *testing.T) {
	for _, c := range []struct {
		file string
		args []string
		want jobforwarder.NAT
		fail string
	}{
		{want: jobforwarder.NATAuto},
		{args: []string{"--nat"}, want: jobforwarder.NATOn},
		{args: []string{"--nat=on"}, want: jobforwarder.NATOn},
		{args: []string{"--nat=off"}, want: jobforwarder.NATOff},
		{args: []string{"--nat=auto"}, file: "nat: off", want: jobforwarder.NATAuto},
		{file: "nat: off", want: jobforwarder.NATOff},
		{file: "nat: true", want: jobforwarder.NATOn},
		{file: "nat: false", want: jobforwarder.NATOff},
		{file: "nat: maybe", fail: ":1: nat: want auto, on or off"},
	} {
		line, _, _, err := configured(t, c.file, c.args...)
		if c.fail != "" {
			if err == nil || !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%q: %v, want %q", c.file, err, c.fail)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", c.file, err)
		}
		if got := natMode(line); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.file, c.args, got, c.want)
		}
	}
}

// TestForwarderWithoutKernelRelays checks that --nat=auto and --nat=off give a reason if the kernel
// forwards no connections.
func TestForwarderWithoutKernelRelays(t *testing.T) {
	for _, c := range []struct {
		mode jobforwarder.NAT
		cfg  forwarder.Config
		want string
	}{
		{jobforwarder.NATOff, forwarder.Config{}, "--nat=off"},
		{jobforwarder.NATAuto, forwarder.Config{Protocol: forwarder.Classic}, "--protocol classic"},
	} {
		c.cfg.Log = zap.NewNop()
		kernel, err := c.mode.Apply(&c.cfg)
		if err = errors.Join(err, kernel.Close()); err != nil || c.cfg.NAT != nil ||
			!strings.Contains(c.cfg.NATOff, c.want) {
			t.Errorf("%s: %+v, %v", c.mode, c.cfg.NATOff, err)
		}
	}
}

// TestNATValueNeedsEqualsSign checks that a value of --nat after a space is not taken for the
// program.
func TestNATValueNeedsEqualsSign(t *testing.T) {
	if err := natMistaken(jobforwarder.NATOn, "off"); err == nil || err.Error() != "--nat off: write --nat=off" {
		t.Errorf("--nat off: %v", err)
	}
	for mode, program := range map[jobforwarder.NAT]string{jobforwarder.NATOn: "prog", jobforwarder.NATOff: "on",
		jobforwarder.NATAuto: ""} {
		if err := natMistaken(mode, program); err != nil {
			t.Errorf("%s, program %q: %v", mode, program, err)
		}
	}
}

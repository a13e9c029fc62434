package main

import (
	"context"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
)

// TestMistakesStartNothing checks that errors in flags are reported before anything is started: the
// context has ended, so that nothing can be started.
func TestMistakesStartNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for line, word := range map[string]string{
		"bench compare --lab --rate fast latency":              "--rate fast: want a number with the unit",
		"bench compare --lab --zipper-rate 5mbits latency":     "--zipper-rate 5mbits: want a number",
		"bench net --lab --rate 100 loggp mpi":                 "--rate 100: want a number",
		"bench report --rate 1bits":                            "--rate 1bits: want a number",
		"bench contention --output /nowhere --rate 0.0mbit":    "--rate 0.0mbit: want a number",
		"calibrate --lab --rate mbit":                          "--rate mbit: want a number",
		"bench compare --lab --modes zipped,foo latency":       `mode "foo": want zipped`,
		"bench compare --modes zipped,routed latency":          "mode routed needs --lab",
		"bench compare --modes zipped,nat latency":             "mode nat needs --lab",
		"forwarder --nat --protocol classic":                   "--nat=on is not supported with --protocol classic, which relays everything",
		"run --nat --protocol classic -c a=1 -c b=1 prog":      "--nat=on is not supported with --protocol classic",
		"run --nat --zipper h -c a=1 -c b=1 prog":              "--nat=on is for the forwarder that zipper run starts, but the job names others",
		"run --nat=on -c a=1 prog":                             "--nat=on is for the forwarder that zipper run starts, but a job of one cluster has none",
		"forwarder --listen 127.0.0.1:0 --dial-allow 10.0.0.1": "--dial-allow: netip.ParsePrefix",
		"forwarder --status=":                                  "--status: want HOST:PORT",
		"bench osu --mode foo latency":                         `mode "foo": want zipped`,
		"bench compare --lab --rate 1.5Gbit --modes x latency": `mode "x"`,
		"bench compare --lab --rate off --modes x latency":     `mode "x"`,
	} {
		err := newApp().RunContext(ctx, strings.Fields("zipper "+line))
		if !clikit.IsUsage(err) || !strings.Contains(err.Error(), word) {
			t.Errorf("zipper %s: %v; want a usage error with %q", line, err, word)
		}
	}
}

// Command zipper joins clusters that share no network into one MPI world. The commands are in
// internal/jobcmd, benchcmd and modelcmd, a file each; their work is done by the packages.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/benchcmd"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/jobcmd"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/modelcmd"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/shellcmd"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/launch/native"
)

func main() {
	os.Exit(clikit.Report(newApp().Run(os.Args)))
}

// newApp returns the application with all commands.
func newApp() *cli.App {
	completing := slices.Contains(os.Args, "--generate-bash-completion")
	app := &cli.App{
		Name:  "zipper",
		Usage: "one MPI world over clusters that share no network",
		Commands: []*cli.Command{
			jobcmd.Run(), jobcmd.Join(), jobcmd.Exec(), jobcmd.Submit(), jobcmd.Forwarder(), jobcmd.Secret(),
			jobcmd.Ticket(),
			benchcmd.Bench(), benchcmd.Calibrate(), benchcmd.Tune(),
			jobcmd.Status(), jobcmd.Drain(), jobcmd.Stop(), jobcmd.Reload(), jobcmd.Doctor(),
			jobcmd.Compiler("cc", native.LangC), jobcmd.Compiler("cxx", native.LangCXX),
			jobcmd.Compiler("fc", native.LangFortran),
			modelcmd.Predict(), modelcmd.Simulate(), modelcmd.Plan(),
			shellcmd.Completion(), shellcmd.Man(),
		},
		Version:                   version(),
		EnableBashCompletion:      true,
		UseShortOptionHandling:    !completing,                  // with it the library does not complete options
		DisableSliceFlagSeparator: true,                         // commas are part of the values
		ExitErrHandler:            func(*cli.Context, error) {}, // main reports errors
		CommandNotFound: func(c *cli.Context, name string) {
			fmt.Fprintf(os.Stderr, "zipper: there is no command %q; zipper help lists them\n", name)
			os.Exit(clikit.ExitUsage)
		},
	}
	clikit.ShortUsageErrors(app)
	return app
}

// release is the version of the release, which scripts/build also gives to pkg-config.
const release = "0.1.0"

// version describes the release, the parts that must be equal everywhere, and the source.
func version() string {
	built := release
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				built += " " + s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				built += ", changed"
			}
		}
	}
	return fmt.Sprintf("%s (protocol %s)", built, wire.Versions(wire.Oldest, wire.Version))
}

package jobcmd

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/launch/native"
)

// Compiler returns the command that compiles with the native MPI's own wrapper and links MMPI.
func Compiler(name string, lang native.Language) *cli.Command {
	return &cli.Command{
		Name:      name,
		Usage:     fmt.Sprintf("compile and link a %s program with MMPI, so that it needs no preloading", lang),
		ArgsUsage: "[--mpi openmpi|mpich|abi] [--show] COMPILER-ARGUMENT...",
		Description: fmt.Sprintf(`zipper %[1]s --mpi mpich -O2 -o prog prog.src

All arguments but --mpi and --show go to the MPI library's own compiler wrapper. --show prints the command instead
of running it. The library can also be chosen by ZIPPER_MPI. abi is MPI 5's standard ABI (C and C++): one program
for clusters of every library that has it, compiled by CC or CXX (cc, c++) with the header that scripts/build found.`, name),
		SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			args := c.Args().Slice()
			if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
				if err := cli.ShowSubcommandHelp(c); err != nil {
					return err
				}
				if len(args) == 0 {
					return clikit.Usage(errors.New("nothing to compile"))
				}
				return nil
			}
			m, args, err := native.SplitMPI(args)
			if err != nil {
				return clikit.Usage(err)
			}
			show := len(args) > 0 && args[0] == "--show" // before or after --mpi
			if show {
				args = args[1:]
			}
			if v := os.Getenv(native.VarMPI); m == "" && v != "" {
				if m, err = native.ParseTarget(v); err != nil {
					return clikit.Usage(fmt.Errorf("%s: %w", native.VarMPI, err))
				}
			}
			cmd, err := native.CompilerCommand(lang, m, args)
			if err != nil {
				return err
			}
			if show {
				fmt.Println(strings.Join(cmd, " "))
				return nil
			}
			return fmt.Errorf("cannot run %s: %w", cmd[0], syscall.Exec(cmd[0], cmd, os.Environ()))
		},
	}
}

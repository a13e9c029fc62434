package clikit

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/internal/jobenv"
)

// TuningFlag is the flag --tuning.
var TuningFlag = &cli.StringFlag{Name: "tuning", EnvVars: []string{jobenv.VarTuning},
	Usage: "`FILE` of zipper tune, with the sizes at which one collective algorithm replaces another"}

// ReadTuning reads a table. Without a name it returns the built-in one.
func ReadTuning(name string) (collectives.Tuning, error) {
	if name == "" {
		return collectives.Tuning{}, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return collectives.Tuning{}, fmt.Errorf("--tuning: %w", err)
	}
	t, err := collectives.ParseTuning(string(text))
	if err != nil {
		return t, fmt.Errorf("--tuning %s: %w", name, err)
	}
	return t, nil
}

// tuning returns the table for the job's processes, from a file or the environment; it may be
// empty.
func tuning(file string) (string, error) {
	own := os.Getenv(jobenv.VarCollectives)
	switch {
	case file != "" && own != "":
		return "", fmt.Errorf("--tuning and %s both say how collectives work: leave one out", jobenv.VarCollectives)
	case file != "":
		t, err := ReadTuning(file)
		return t.String(), err
	case own == "":
		return "", nil
	}
	t, err := collectives.ParseTuning(own)
	if err != nil {
		return "", fmt.Errorf("%s: %w", jobenv.VarCollectives, err)
	}
	return t.String(), nil
}

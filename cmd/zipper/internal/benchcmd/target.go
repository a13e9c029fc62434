package benchcmd

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/launch/spec"
)

// targetFlags choose the cluster or lab for a benchmark.
var targetFlags = []cli.Flag{
	&cli.StringSliceFlag{Name: "cluster", Aliases: []string{"c"},
		Usage: "`NAME=RANKS`[,...] as in zipper run; default a=1 and b=1 on this host"},
	&cli.StringSliceFlag{Name: "zipper", Aliases: []string{"z"},
		Usage: "`HOST[:PORT]` of a forwarder that runs already"},
	&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "job description, YAML `FILE`"},
	&cli.BoolFlag{Name: "lab", Usage: "in namespaces of this machine with no route between the clusters (root)"},
	rateFlag("rate", "", "limit of every link in the lab, such as `1gbit`"),
	&cli.IntFlag{Name: "lab-zippers", Usage: "zipper nodes of the lab, 1 to 8", Value: 1},
	rateFlag("zipper-rate", "", "another limit of the links of the lab's zipper nodes"),
	&cli.StringFlag{Name: "format", Usage: "table, csv or json", Value: "table"},
	clikit.TuningFlag, clikit.LogFlag,
}

const modes = "zipped, plain, checked or sealed (zipped at that level), classic (the original's protocol), native (one cluster, no zipper), nat (lab only: the zipper node's kernel passes connections on), routed (lab only: the zipper node routes IP)"

// modeFlag belongs to commands that measure on one target, modesFlag to those that compare.
var (
	modeFlag  = &cli.StringFlag{Name: "mode", Usage: modes, Value: "zipped"}
	modesFlag = &cli.StringFlag{Name: "modes", Usage: "`LIST`, the first is compared with the others: " + modes,
		Value: "zipped,native"}
)

func target(mode string, job *spec.Job, l *lab.Lab) (drive.Target, error) {
	total := ranks(job)
	if slices.Contains(wire.Levels(), mode) {
		return atLevel(mode, job, l)
	}
	switch {
	case mode == "zipped" && l != nil:
		return l.Zipped("zipped", job.Clusters[0].Ranks, job.Clusters[1].Ranks, nil), nil
	case mode == "classic" && l != nil:
		return l.Classic(job.Clusters[0].Ranks, job.Clusters[1].Ranks)
	case mode == "zipped", mode == "classic":
		return drive.Target{Name: mode, Job: func() (*spec.Job, error) {
			j := *job
			j.Clusters = append([]spec.Cluster(nil), job.Clusters...)
			if mode == "classic" {
				j.Protocol = jobenv.Classic
			}
			return &j, nil
		}}, nil
	case mode == "native" && l != nil:
		return l.Native(total), nil
	case mode == "native":
		mpi := job.Clusters[0].MPI
		if mpi == "" {
			mpi = spec.OpenMPI
		}
		return drive.Native(mpi, total), nil
	case mode == "routed" && l != nil:
		return l.Routed(job.Clusters[0].Ranks, job.Clusters[1].Ranks), nil
	case mode == "nat" && l != nil:
		return l.NAT(job.Clusters[0].Ranks, job.Clusters[1].Ranks), nil
	}
	return drive.Target{}, checkMode(mode, l != nil)
}

// atLevel returns the zipped target at a level.
func atLevel(level string, job *spec.Job, l *lab.Lab) (drive.Target, error) {
	zipped, err := target("zipped", job, l)
	return drive.Target{Name: level, Job: func() (*spec.Job, error) {
		j, err := zipped.Job()
		if err != nil {
			return nil, err
		}
		j.Level = level
		return j, nil
	}}, err
}

// checkMode returns an error if there is no such mode.
func checkMode(mode string, lab bool) error {
	switch {
	case (mode == "routed" || mode == "nat") && !lab:
		return fmt.Errorf("mode %s needs --lab", mode)
	case slices.Contains(append(wire.Levels(), "zipped", "classic", "native", "nat", "routed"), mode):
		return nil
	}
	return fmt.Errorf("mode %q: want zipped, plain, checked, sealed, classic, native, nat or routed", mode)
}

func ranks(job *spec.Job) (total int) {
	for _, cl := range job.Clusters {
		total += cl.Ranks
	}
	return total
}

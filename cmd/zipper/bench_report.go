package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/osu"
	"github.com/leidenzipper/zipper/bench/report"
	"github.com/leidenzipper/zipper/bench/stat"
	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/jobenv"
)

// reportSet is how much a report measures.
type reportSet struct {
	rounds  int
	osu     osu.Options
	p2pMax  int
	collMax int
	ranks   []int // per cluster
	classes map[string]string
}

func reportSets(name string) (reportSet, error) {
	o := osu.Defaults()
	switch name {
	case "quick": // under five minutes on two cores
		o.Rule, o.RepSeconds, o.Warmup = stat.Rule{Min: 5, Max: 5, Width: 0.025}, 0.005, 5
		return reportSet{rounds: 1, osu: o, p2pMax: 256 << 10, collMax: 64 << 10, ranks: []int{1, 2, 3}, classes: map[string]string{"cg": "S", "is": "S", "mg": "S", "ft": "S", "lu": "S", "ep": "S"}}, nil
	case "full":
		return reportSet{rounds: 10, osu: o, p2pMax: 4 << 20, collMax: 1 << 20, ranks: []int{1, 2, 3, 4}, classes: map[string]string{"cg": "A", "is": "A", "mg": "A", "ft": "W", "lu": "W", "ep": "W"}}, nil
	}
	return reportSet{}, fmt.Errorf("--set %s: want quick or full", name)
}

func benchReportCommand() *cli.Command {
	return &cli.Command{
		Name: "report", Usage: "measure a chosen set and write one page (HTML, Markdown, JSON inside)",
		Description: "With root in the namespace lab: zipped, classic (the original's protocol), routed (the zipper node routes IP) and native. Without, on loopback: zipped, classic and native.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "set", Usage: "quick (under 5 minutes) or full", Value: "quick"},
			&cli.StringFlag{Name: "out", Usage: "`DIR` for report.html and report.md", Value: "."},
			&cli.StringFlag{Name: "rate", Usage: "limit of every link in the lab, such as `1gbit` (off: none)", Value: "1gbit"},
			logFlag,
		},
		Action: benchReport,
	}
}

func benchReport(c *cli.Context) error {
	if c.NArg() > 0 {
		return usage(errors.New("bench report takes no arguments"))
	}
	set, err := reportSets(c.String("set"))
	if err != nil {
		return usage(err)
	}
	log, err := newLogger(c.String("log"))
	if err != nil {
		return err
	}
	program, err := drive.Program()
	if err != nil {
		return err
	}
	ctx, cancel := untilSignal(c.Context)
	defer cancel()
	r := &drive.Runner{Program: program, Options: launch.Options{StartRelay: relayStarter(log)}}
	d := &report.Data{Title: "Leiden Zipper: measurements", Set: c.String("set")}
	targets := func(a, b int) []drive.Target {
		zipped := func(protocol string) func() *launch.Job {
			return func() *launch.Job {
				return &launch.Job{Protocol: protocol, Clusters: []launch.Cluster{{Name: "a", Ranks: a, MPI: launch.OpenMPI}, {Name: "b", Ranks: b, MPI: launch.OpenMPI}}}
			}
		}
		return []drive.Target{{Name: "zipped", Job: zipped("")}, {Name: "classic", Job: zipped(jobenv.Classic)}, drive.Native(launch.OpenMPI, a+b)}
	}
	shaping := "loopback, none"
	d.Setting = "Zipped: two clusters on loopback, joined by a forwarder. Classic: the same with a handshake for every message, half duplex, store and forward, as in the original middleware. Native: one MPI job over shared memory on the same machine."
	if os.Geteuid() == 0 {
		cfg := lab.Small()
		if cfg.Rate = c.String("rate"); cfg.Rate == "off" {
			cfg.Rate = ""
		}
		l, err := lab.Up(ctx, cfg)
		if err != nil {
			return err
		}
		defer l.Down()
		if _, err := l.Classic(1, 1); err != nil {
			return err
		}
		targets = func(a, b int) []drive.Target {
			classic, _ := l.Classic(a, b) // it runs
			return []drive.Target{l.Zipped("zipped", a, b, nil), classic, l.Routed(a, b), l.Native(a + b)}
		}
		shaping = c.String("rate")
		d.Setting = "Zipped: two clusters in namespaces with no route between them, joined by a forwarder. Classic: the same with a handshake for every message, half duplex, store and forward, as in the original middleware. Routed: one Open MPI job over both, the zipper node routes IP. Native: one Open MPI job inside one cluster."
	}
	d.Environment = drive.Describe(shaping)
	begin := time.Now()
	say := func(what string) func(int, drive.Target) {
		return func(round int, t drive.Target) {
			fmt.Fprintf(os.Stderr, "%4.0f s  %s: %s, round %d of %d\n", time.Since(begin).Seconds(), what, t.Name, round+1, set.rounds)
		}
	}
	p2p := set.osu
	p2p.MaxSize = set.p2pMax
	cs, err := r.Compare(ctx, targets(1, 1), p2p, set.rounds, say("point to point"), "latency", "bw", "bibw")
	if err != nil {
		return err
	}
	d.Sizes = cs
	coll := set.osu
	coll.MaxSize = set.collMax
	names := []string{"barrier", "bcast", "reduce", "allreduce", "alltoall", "alltoallv"}
	scaling := map[string]*report.Scaling{}
	for _, n := range set.ranks {
		cs, err := r.Compare(ctx, targets(n, n), coll, set.rounds, say(fmt.Sprintf("collectives on %d ranks", 2*n)), names...)
		if err != nil {
			return err
		}
		for _, cmp := range cs {
			if n == 2 {
				if cmp.Benchmark != "barrier" {
					d.Sizes = append(d.Sizes, cmp)
				}
			}
			addScaling(scaling, cmp, 2*n)
		}
	}
	for _, n := range names {
		d.Ranks = append(d.Ranks, *scaling[n])
	}
	for _, k := range []string{"cg", "is", "mg", "ft", "lu", "ep"} {
		kernel := report.Kernel{Name: k, Class: set.classes[k], Ranks: 4}
		for _, t := range targets(2, 2) {
			say("NPB "+k)(0, t)
			res, out, err := r.NPB(ctx, t, k, set.classes[k])
			if err != nil {
				return err
			}
			kernel.Targets, kernel.Results = append(kernel.Targets, t.Name), append(kernel.Results, res)
			for _, x := range out.Traffic {
				kernel.Bytes += x.Bytes
			}
		}
		d.NPB = append(d.NPB, kernel)
	}
	d.Seconds = time.Since(begin).Seconds()
	return writeReport(c.String("out"), d)
}

// addScaling takes one collective's time at the smallest size for this number of ranks.
func addScaling(all map[string]*report.Scaling, c *drive.Comparison, ranks int) {
	s := all[c.Benchmark]
	row := c.Rows[0]
	for _, r := range c.Rows {
		if r.Size == 1024 {
			row = r
		}
	}
	if s == nil {
		s = &report.Scaling{Benchmark: c.Benchmark, Size: row.Size, Targets: c.Targets, Values: make([][]float64, len(c.Targets))}
		all[c.Benchmark] = s
	}
	s.Ranks = append(s.Ranks, ranks)
	for t, v := range row.Values {
		s.Values[t] = append(s.Values[t], stat.Median(v))
	}
}

func writeReport(dir string, d *report.Data) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, make := range map[string]func() ([]byte, error){"report.html": d.HTML, "report.md": d.Markdown} {
		b, err := make()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("wrote %s and %s after %.0f s of measuring\n", filepath.Join(dir, "report.html"), filepath.Join(dir, "report.md"), d.Seconds)
	return nil
}

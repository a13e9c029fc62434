package modelcmd

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/contention/pattern"
	"github.com/leidenzipper/zipper/contention/plan"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/predict"
	"github.com/leidenzipper/zipper/contention/quantity"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/traffic/rankfile"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

// Plan returns the command zipper plan.
func Plan() *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "place ranks in clusters and on zipper nodes so that little traffic crosses the forwarders",
		ArgsUsage: "PLATFORM TRACE|GENERATOR",
		Description: "TRACE is a file that zipper run --record wrote (its communication matrix is used); GENERATOR is a pattern such as ring or\n" +
			"random:d=2. The plan is exact for small jobs and by a multilevel partitioner for large ones.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "pin",
				Usage: "`RANK=SITE[,SITE...]`: the rank may only go to these clusters or zippers (repeat)"},
			&cli.StringSliceFlag{Name: "together", Usage: "`RANK,RANK...`: these ranks stay on one site (repeat)"},
			&cli.StringFlag{Name: "work",
				Usage: "`TIME` each rank computes at speed 1, to weigh faster clusters against traffic", Value: "0"},
			&cli.StringFlag{Name: "sharing", Usage: "`RULE` for the predicted times (default: the platform's)"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"},
				Usage: "write the plan to `FILE` (RANK HOST CLUSTER a line), for zipper run --plan and zipper predict --ranks, and beside it for the clusters' launchers FILE.CLUSTER.hosts and FILE.CLUSTER.rankfile"},
			&cli.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return clikit.Usage(errors.New("plan: want PLATFORM and TRACE or GENERATOR (flags come before them)"))
			}
			p, err := readPlatform(c.Args().Get(0))
			if err != nil {
				return err
			}
			job, err := readJob(c.Args().Get(1), p)
			if err != nil {
				return err
			}
			x, err := plan.FromPlatform(p, job.ranks, job.edges)
			if err != nil {
				return err
			}
			if err := constrain(x, c.StringSlice("pin"), c.StringSlice("together"), c.String("work")); err != nil {
				return clikit.Usage(fmt.Errorf("plan: %w", err))
			}
			r, err := makePlan(p, x, job, c.String("sharing"))
			if err != nil {
				return err
			}
			if name := c.String("output"); name != "" {
				if err := r.write(name); err != nil {
					return err
				}
			}
			if c.Bool("json") {
				return clikit.WriteJSON(c.App.Writer, r)
			}
			return r.table(c.App.Writer, c.String("output"))
		},
	}
}

// job is a communication graph with a function that replays it on a placement.
type job struct {
	ranks    int
	edges    []plan.Edge
	messages func(places []string) ([]platform.Message, error)
	// clusters are those of a recorded job; nil for others.
	clusters []trace.Cluster
}

func readJob(arg string, p *platform.Platform) (*job, error) {
	name, _, _ := strings.Cut(arg, ":")
	if _, ok := pattern.Generators()[name]; ok {
		return generated(arg, p)
	}
	t, err := read(arg, trace.Read)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is neither a trace nor a pattern: patterns are ring, chain, alltoall, gather, scatter and random",
			arg)
	}
	if err != nil {
		return nil, err
	}
	j := &job{ranks: t.Ranks(), clusters: t.Clusters,
		messages: func(places []string) ([]platform.Message, error) { return pattern.Replay(t, places, nil) }}
	j.add(t.Matrix())
	return j, nil
}

// generated runs the generator once with ranks for names to find out which ranks communicate.
func generated(spec string, p *platform.Platform) (*job, error) {
	room := 0
	for _, s := range p.Sites() {
		room += len(s.Slots)
	}
	names := make([]string, room)
	for r := range names {
		names[r] = strconv.Itoa(r)
	}
	// The default is as many ranks as the clusters hold, without zipper nodes.
	if name, options, _ := strings.Cut(spec, ":"); !strings.Contains(options, "ranks=") {
		spec = fmt.Sprintf("%s:ranks=%d,%s", name, len(p.Places()), options)
	}
	ms, err := pattern.Generate(spec, names)
	if err != nil {
		return nil, err
	}
	j := &job{messages: func(places []string) ([]platform.Message, error) {
		list := slices.Clone(ms)
		for i := range list {
			from, _ := strconv.Atoi(ms[i].From)
			to, _ := strconv.Atoi(ms[i].To)
			list[i].From, list[i].To = places[from], places[to]
		}
		return list, nil
	}}
	m := make(map[[2]int]int64)
	for _, x := range ms {
		from, _ := strconv.Atoi(x.From)
		to, _ := strconv.Atoi(x.To)
		bytes, _ := x.Bytes.Float64()
		m[[2]int{from, to}] += int64(math.Ceil(bytes))
		j.ranks = max(j.ranks, from+1, to+1)
	}
	j.add(m)
	return j, nil
}

func (j *job) add(matrix map[[2]int]int64) {
	both := make(map[[2]int]float64)
	for pair, bytes := range matrix {
		both[[2]int{min(pair[0], pair[1]), max(pair[0], pair[1])}] += float64(bytes)
	}
	for pair, bytes := range both {
		j.edges = append(j.edges, plan.Edge{A: pair[0], B: pair[1], Bytes: bytes})
	}
	slices.SortFunc(j.edges, func(a, b plan.Edge) int {
		if a.A != b.A {
			return a.A - b.A
		}
		return a.B - b.B
	})
}

func constrain(x *plan.Problem, pins, together []string, work string) error {
	number := func(s string) (int, error) {
		r, err := strconv.Atoi(s)
		if err != nil || r < 0 || r >= x.Ranks {
			return 0, fmt.Errorf("%q is not a rank: the job has %d", s, x.Ranks)
		}
		return r, nil
	}
	x.Allowed = make(map[int][]int)
	for _, pin := range pins {
		rank, sites, ok := strings.Cut(pin, "=")
		r, err := number(rank)
		if err != nil || !ok {
			return fmt.Errorf("--pin %s: want RANK=SITE[,SITE...]", pin)
		}
		for _, name := range strings.Split(sites, ",") {
			s := slices.IndexFunc(x.Sites, func(s plan.Site) bool { return s.Name == name })
			if s < 0 {
				return fmt.Errorf("--pin %s: no cluster, and no zipper with cores, is named %q", pin, name)
			}
			x.Allowed[r] = append(x.Allowed[r], s)
		}
	}
	for _, set := range together {
		var list []int
		for _, rank := range strings.Split(set, ",") {
			r, err := number(rank)
			if err != nil {
				return fmt.Errorf("--together %s: %w", set, err)
			}
			list = append(list, r)
		}
		x.Together = append(x.Together, list)
	}
	t, err := quantity.Time(work)
	if err != nil {
		return fmt.Errorf("--work: %w", err)
	}
	if seconds, _ := t.Float64(); seconds > 0 {
		x.Work = slices.Repeat([]float64{seconds}, x.Ranks)
	}
	return nil
}

// now returns the places of the ranks without a plan: where they were recorded, if the platform has
// those clusters with room for them, else in order.
func (j *job) now(x *plan.Problem) (at plan.Placement, recorded bool, err error) {
	for _, c := range j.clusters {
		site := slices.IndexFunc(x.Sites, func(s plan.Site) bool { return s.Name == c.Name })
		if site < 0 || c.Ranks > x.Sites[site].Room {
			at = nil
			break
		}
		at = append(at, slices.Repeat([]int{site}, c.Ranks)...)
	}
	if at != nil {
		return at, true, nil
	}
	at, err = plan.InOrder(x)
	return at, false, err
}

// planReport is the outcome; times are in seconds. Before is about the ranks at their present
// places (now).
type planReport struct {
	// Recorded tells that the present places are those of the record; otherwise the ranks are in
	// order.
	Recorded bool `json:"before_as_recorded"`
	Exact    bool `json:"exact"`
	// Hosts has the host of each rank.
	Hosts []string `json:"hosts"`
	// Clusters has the cluster of each rank's native job.
	Clusters  []string `json:"clusters"`
	OnZippers []int    `json:"ranks_on_zippers,omitempty"`
	// Order is the order of ranks in the form of zipper run --order.
	Order          string         `json:"order"`
	Sites          map[string]int `json:"ranks_per_site"`
	CrossingBefore float64        `json:"crossing_bytes_before"`
	CrossingAfter  float64        `json:"crossing_bytes_after"`
	Before         float64        `json:"predicted_before_s"`
	After          float64        `json:"predicted_after_s"`
	Bottleneck     string         `json:"bottleneck_after"`
	// CutSet are ranks that, all on zipper nodes, would leave no traffic between the planned
	// clusters. It is set for two clusters only.
	CutSet []int `json:"cut_set,omitempty"`
	// Zippers has N*, the useful number of zippers, by direction.
	Zippers map[string]int `json:"useful_zippers"`
}

func makePlan(p *platform.Platform, x *plan.Problem, j *job, sharing string) (*planReport, error) {
	before, recorded, err := j.now(x)
	if err != nil {
		return nil, err
	}
	after, exact, err := plan.Solve(x)
	if err != nil {
		return nil, err
	}
	if err := x.Check(after); err != nil {
		return nil, err
	}
	r := &planReport{Recorded: recorded, Exact: exact, Sites: make(map[string]int), CrossingBefore: x.Crossing(before),
		CrossingAfter: x.Crossing(after),
		Zippers:       make(map[string]int)}
	sites := p.Sites() // in the same order as x.Sites
	for rank, s := range after {
		r.Sites[sites[s].Name]++
		if sites[s].Zipper {
			r.OnZippers = append(r.OnZippers, rank)
		}
	}
	predicted := func(at plan.Placement) (*predict.Report, []string, error) {
		hosts, err := plan.Hosts(p, at)
		if err != nil {
			return nil, nil, err
		}
		messages, err := j.messages(hosts)
		if err != nil {
			return nil, nil, err
		}
		report, err := predict.Run(p, messages, predict.Options{Sharing: sharing, Grain: -1})
		return report, hosts, err
	}
	if x.Check(before) == nil {
		report, _, err := predicted(before)
		if err != nil {
			return nil, err
		}
		r.Before = report.Makespan
	}
	report, hosts, err := predicted(after)
	if err != nil {
		return nil, err
	}
	r.After, r.Bottleneck, r.Hosts = report.Makespan, report.Bottleneck, hosts
	r.Clusters = plan.Clusters(p, x, after)
	r.Order = jobenv.FormatOrder(jobenv.OrderOf(r.Clusters))
	if len(p.Clusters) == 2 && len(x.Edges) <= mostForCut {
		r.CutSet = plan.VertexCut(x.Ranks, x.Edges, after) // sites 0 and 1 are the clusters
	}
	for _, a := range p.Clusters {
		for _, b := range p.Clusters {
			if n := p.UsefulZippers(a.Name, b.Name); n > 0 {
				r.Zippers[a.Name+">"+b.Name] = n
			}
		}
	}
	return r, nil
}

// table writes the plan for users; name is the file that it was written to, if any.
func (r *planReport) table(w io.Writer, name string) error {
	how := "a heuristic plan"
	// A plan that is slower otherwise gains in crossing bytes.
	slower := r.Before > 0 && r.After > r.Before && r.CrossingAfter <= r.CrossingBefore
	switch {
	case r.Exact && slower:
		how = "the plan with the fewest bytes through forwarders"
	case r.Exact:
		how = "the best plan"
	}
	fmt.Fprintf(w, "%s: ", how)
	for i, s := range slices.Sorted(maps.Keys(r.Sites)) {
		if i > 0 {
			fmt.Fprint(w, ", ")
		}
		fmt.Fprintf(w, "%d ranks on %s", r.Sites[s], s)
	}
	fmt.Fprint(w, "\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	before := "in order"
	if r.Recorded {
		before = "as recorded"
	}
	fmt.Fprintf(t, "\t%s\tplanned\n", before)
	fmt.Fprintf(t, "bytes through forwarders\t%s\t%s\n", quantity.FormatSize(r.CrossingBefore),
		quantity.FormatSize(r.CrossingAfter))
	fmt.Fprintf(t, "predicted communication\t%s\t%s\n", quantity.FormatTime(r.Before), quantity.FormatTime(r.After))
	if err := t.Flush(); err != nil {
		return err
	}
	if slower {
		fmt.Fprintf(w, "\nThe plan is made for few bytes through forwarders, but is predicted to be slower than ranks %s, which may be the better choice.\n",
			before)
	}
	fmt.Fprintf(w, "\nbottleneck of the plan: %s\n", r.Bottleneck)
	if n := len(r.CutSet); n > 0 {
		fmt.Fprintf(w, "with %d more ranks on zipper nodes nothing would cross a forwarder: %v\n", n,
			r.CutSet[:min(n, mostListed)])
	}
	for _, d := range slices.Sorted(maps.Keys(r.Zippers)) {
		fmt.Fprintf(w, "zippers worth having %s (N*): %d\n", d, r.Zippers[d])
	}
	if len(r.OnZippers) > 0 {
		fmt.Fprintf(w, "ranks on zipper nodes: %v; they need dual=: the nodes' addresses on the other clusters' networks\n",
			r.OnZippers[:min(len(r.OnZippers), mostListed)])
	}
	if name != "" {
		fmt.Fprintf(w, "\nzipper run --plan %s -- PROGRAM\n", name)
		if len(r.Order) <= longestOrder {
			fmt.Fprintf(w, "in batch scripts: ZIPPER_ORDER=%s\n", r.Order)
		}
	}
	fmt.Fprintln(w, "\nrank  host  cluster")
	for rank, h := range r.Hosts {
		if rank == mostPlaces {
			fmt.Fprintf(w, "... and %d more: write them with --output FILE\n", len(r.Hosts)-rank)
			break
		}
		fmt.Fprintf(w, "%4d  %s  %s\n", rank, h, r.Clusters[rank])
	}
	return nil
}

// write writes the plan and, for each cluster, the host lists of its launcher.
func (r *planReport) write(name string) error {
	places := make([]rankfile.Place, len(r.Hosts))
	for rank, h := range r.Hosts {
		places[rank] = rankfile.Place{Host: h, Cluster: r.Clusters[rank]}
	}
	if err := clikit.WriteFile(name, func(w io.Writer) error { return rankfile.Write(w, places) }); err != nil {
		return err
	}
	for _, cluster := range slices.Compact(slices.Sorted(slices.Values(r.Clusters))) {
		hosts := rankfile.Hosts(places, cluster)
		if err := clikit.WriteFile(name+"."+cluster+".hosts",
			func(w io.Writer) error { return rankfile.WriteHosts(w, hosts) }); err != nil {
			return err
		}
		if err := clikit.WriteFile(name+"."+cluster+".rankfile",
			func(w io.Writer) error { return rankfile.WriteOpenMPI(w, hosts) }); err != nil {
			return err
		}
	}
	return nil
}

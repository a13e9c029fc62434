package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/monitor"
	"github.com/leidenzipper/zipper/forwarder/report"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Status returns the command zipper status.
func Status() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show a forwarder's state: its jobs, missing ranks, and traffic between clusters",
		ArgsUsage: "[HOST[:PORT]]",
		Description: fmt.Sprintf(`zipper status                  the forwarder on this host
ssh zip1 zipper status         the one on a zipper node

A forwarder answers on the loopback address, port %d, unless zipper forwarder --status sets another address.`, monitor.DefaultPort),
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print the whole status as JSON"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"},
				Usage: "show the status every two seconds, with rates, until Ctrl-C"}},
		Action: showStatus,
	}
}

// answerTime is how long a forwarder has to answer; watchStep is the time between the requests of
// --watch.
const (
	answerTime = 10 * time.Second
	watchStep  = 2 * time.Second
)

func showStatus(c *cli.Context) error {
	if c.NArg() > 1 {
		return clikit.Usage(fmt.Errorf("unexpected argument %q", c.Args().Get(1)))
	}
	addr := statusAddress(c.Args().First())
	if c.Bool("watch") {
		if c.Bool("json") {
			return clikit.Usage(errors.New("--watch and --json: want one of them"))
		}
		ctx, cancel := clikit.UntilSignal(c.Context)
		defer cancel()
		return watchStatus(ctx, addr, os.Stdout)
	}
	s, err := fetch(c.Context, addr)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return clikit.WriteJSON(os.Stdout, s)
	}
	return writeStatus(os.Stdout, s, nil)
}

func fetch(ctx context.Context, addr string) (forwarder.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return monitor.Fetch(ctx, addr)
}

// watchStatus shows the status repeatedly until ctx ends: in place on a terminal, otherwise one
// after the other. A forwarder that does not answer may be about to start again.
func watchStatus(ctx context.Context, addr string, out *os.File) error {
	var before *forwarder.Status
	t := time.NewTicker(watchStep)
	defer t.Stop()
	for first := true; ; first = false {
		var text strings.Builder
		s, err := fetch(ctx, addr)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			fmt.Fprintf(&text, "%v\n", err)
			before = nil
		default:
			if err := writeStatus(&text, s, before); err != nil {
				return err
			}
			before = &s
		}
		if columns, rows, ok := clikit.Terminal(out); ok {
			err = clikit.Page(out, text.String(), columns, rows)
		} else {
			_, err = fmt.Fprintln(out, text.String())
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// writeStatus writes a status for users. before, if not nil, is an earlier status, for rates.
func writeStatus(out io.Writer, s forwarder.Status, before *forwarder.Status) error {
	text := wire.Printable // a forwarder passes on texts of strangers
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "forwarder on %s: up %v, protocol version %d, %d event loops, %d links\n",
		text(strings.Join(s.Addresses, ", ")), s.Now.Sub(s.Started).Round(time.Second), s.Protocol, s.Loops, s.Links)
	if s.Draining {
		fmt.Fprintln(w, "takes no new jobs: it is being drained")
	}
	if s.HostKey != "" {
		fmt.Fprintf(w, "host key %s\n", text(s.HostKey))
	}
	switch {
	case s.NAT && s.NATFailure != "":
		fmt.Fprintf(w, "the kernel passes no new connections on between ranks: %s\n", text(s.NATFailure))
	case s.NAT:
		fmt.Fprintln(w, "the kernel passes connections on between ranks that exchange much")
	case s.NATOff != "":
		fmt.Fprintf(w, "all messages are relayed by this process: %s\n", text(s.NATOff))
	}
	writeTotals(w, &s.Totals)
	for _, j := range s.Jobs {
		fmt.Fprintf(w, "job %s: %s, %d of %d ranks, level %s\n", text(j.Job), text(j.State), j.Joined, j.Ranks,
			text(j.Level))
		if j.User != "" {
			fmt.Fprintf(w, "  user %s\n", text(j.User))
		}
		if j.Missing != "" {
			fmt.Fprintf(w, "  waits for %s\n", text(j.Missing))
		}
		if j.Refused != "" {
			fmt.Fprintf(w, "  refused: %s\n", text(j.Refused))
		}
		if j.Reason != "" {
			fmt.Fprintf(w, "  reason: %s\n", text(j.Reason))
		}
		writeLost(w, j.Lost, s.Now)
		first := 0
		for _, c := range j.Clusters {
			fmt.Fprintf(w, "  cluster %s: virtual ranks %d to %d%s\n", text(c.Name), first, first+c.Size-1, clusterOwner(c))
			first += c.Size
		}
		if j.MoreClusters > 0 {
			fmt.Fprintf(w, "  and %d more clusters\n", j.MoreClusters)
		}
		if len(j.Forwarders) > 0 {
			fmt.Fprintf(w, "  several hops: linked to the forwarders %s, for the ranks that join them\n",
				text(strings.Join(j.Forwarders, ", ")))
		}
		for _, t := range j.Trunks {
			fmt.Fprintf(w, "  to the forwarder %s: %s\n", text(t.Forwarder), trunkState(t))
		}
		writeTraffic(w, j.Traffic, rates(&j, &s, before))
		if was := jobBefore(&j, before); was != nil {
			if who, part := report.Limiting(&j, was, s.Now.Sub(before.Now)); who != "" {
				fmt.Fprintf(w, "  limited by %s: its links were full %.0f %% of the time\n", text(who), 100*part)
			}
		}
		writeWays(w, &j)
		if j.LostLinks > 0 {
			var again uint64
			for i := range j.Traffic {
				again += j.Traffic[i].ResentFrames
			}
			fmt.Fprintf(w, "  %d links lost and reconnected, or lost for a while; %d of them because of damaged frames; %d frames sent again\n",
				j.LostLinks, j.BadFrames, again)
		}
		if j.QueuedBytes > 0 {
			fmt.Fprintf(w, "  %d bytes wait for slow destinations\n", j.QueuedBytes)
		}
	}
	if s.MoreJobs > 0 {
		fmt.Fprintf(w, "and %d more jobs, which are not listed: the answer has room for the oldest only\n", s.MoreJobs)
	}
	for i := len(s.Past) - 1; i >= 0; i-- {
		p := s.Past[i]
		how := "ended well"
		if !p.OK {
			how = fmt.Sprintf("failed (%d): %s", p.Code, text(p.Reason))
		}
		fmt.Fprintf(w, "past job %s, %v ago: %s\n", text(p.Job), s.Now.Sub(p.Ended).Round(time.Second), how)
		writeLost(w, p.Lost, s.Now)
		writeTraffic(w, p.Traffic, nil)
		if k := p.Kernel; k.Messages > 0 {
			fmt.Fprintf(w, "  over connections in the kernel: %d messages, %d bytes of data\n", k.Messages, k.PayloadBytes)
		}
	}
	if s.MorePast > 0 {
		fmt.Fprintf(w, "and %d more past jobs\n", s.MorePast)
	}
	return w.Flush()
}

// writeWays writes the numbers of a job's ports for connections in the kernel, and the traffic over
// them that its ranks have reported.
func writeWays(w io.Writer, j *forwarder.JobStatus) {
	if j.Ways > 0 {
		fmt.Fprintf(w, "  the kernel passes connections on: ranks were told %d ports, of which %d are open now; "+
			"they report %d messages with %d bytes over them\n", j.Ways, j.Doors, j.Kernel.Messages, j.Kernel.PayloadBytes)
	}
	if j.WaysUnused {
		fmt.Fprintln(w, "  no rank has reported traffic over these ports: does a firewall drop forwarded connections? "+
			"(docs/howto/direct-links.md)")
	}
}

// writeLost writes which clusters a job has lost, without which it goes on.
func writeLost(w io.Writer, lost []forwarder.LostCluster, now time.Time) {
	for _, l := range lost {
		fmt.Fprintf(w, "  cluster %s was lost %v ago", wire.Printable(l.Cluster), now.Sub(l.At).Round(time.Second))
		if l.Reason != "" {
			fmt.Fprintf(w, ": %s", wire.Printable(l.Reason))
		}
		fmt.Fprintln(w)
	}
}

// writeTotals writes the failures since the forwarder started, if there were any.
func writeTotals(w io.Writer, t *forwarder.Totals) {
	why := []string{}
	for reason, n := range t.Refused {
		if n > 0 {
			why = append(why, fmt.Sprintf("%d: %s", n, wire.Printable(reason)))
		}
	}
	if len(why) > 0 {
		slices.Sort(why)
		fmt.Fprintf(w, "refused since the start: %s\n", strings.Join(why, ", "))
	}
	if t.Lost > 0 {
		fmt.Fprintf(w, "since the start %d clusters lost by jobs that outlive clusters\n", t.Lost)
	}
	if t.LostLinks+t.BadFrames+t.LostTrunks+t.Traffic.ResentFrames > 0 {
		fmt.Fprintf(w, "since the start %d links of ranks and %d to other forwarders lost, %d damaged frames, %d frames sent again\n",
			t.LostLinks, t.LostTrunks, t.BadFrames, t.Traffic.ResentFrames)
	}
}

// clusterOwner describes the host of a cluster's first rank, its architecture and its user.
func clusterOwner(c forwarder.ClusterStatus) (s string) {
	if c.Host != "" {
		s = ", the first on " + wire.Printable(c.Host)
	}
	if c.Arch != "" {
		s += ", " + wire.Printable(c.Arch)
	}
	if c.Origin != "" {
		s += ", " + wire.Printable(c.Origin)
	}
	return s
}

// trunkState describes the state of the link to another forwarder.
func trunkState(t forwarder.TrunkStatus) string {
	s := "cut"
	switch {
	case t.Connections == 1:
		s = "1 connection"
	case t.Connections > 1:
		s = fmt.Sprintf("%d connections", t.Connections)
	}
	if t.Carried {
		s += " by a command, slower than those of TCP"
	}
	if t.RoundTrip > 0 {
		s += fmt.Sprintf(", round trip %.3g ms", t.RoundTrip)
	}
	if t.Congestion != "" {
		s += ", " + wire.Printable(t.Congestion)
	}
	if t.Lost > 0 {
		s += fmt.Sprintf(", %d lost so far", t.Lost)
	}
	if t.QueuedBytes > 0 {
		s += fmt.Sprintf(", %d bytes wait", t.QueuedBytes)
	}
	return s
}

// jobBefore returns a job's earlier status, if the job ran then.
func jobBefore(j *forwarder.JobStatus, before *forwarder.Status) *forwarder.JobStatus {
	if before != nil {
		for i := range before.Jobs {
			if o := &before.Jobs[i]; o.Job == j.Job && o.Key == j.Key && o.State == j.State && j.State == "running" {
				return o
			}
		}
	}
	return nil
}

// rates describes how fast data went in each direction since before; it returns nil if that is
// unknown.
func rates(j *forwarder.JobStatus, s, before *forwarder.Status) []string {
	was := jobBefore(j, before)
	if was == nil {
		return nil
	}
	old := map[[2]string]uint64{}
	for _, t := range was.Traffic {
		old[[2]string{t.From, t.To}] = t.PayloadBytes
	}
	var list []string
	for _, t := range j.Traffic {
		n := t.PayloadBytes - min(t.PayloadBytes, old[[2]string{t.From, t.To}])
		list = append(list, fmt.Sprintf("\t%.3g MB/s", float64(n)/1e6/max(1e-3, s.Now.Sub(before.Now).Seconds())))
	}
	return list
}

func writeTraffic(w io.Writer, traffic []forwarder.Traffic, rates []string) {
	text := wire.Printable
	for i, t := range traffic {
		rate := ""
		if i < len(rates) {
			rate = rates[i]
		}
		fmt.Fprintf(w, "  %s -> %s\t%d messages\t%d bytes of data\t%d bytes of headers and control%s\n", text(t.From),
			text(t.To),
			t.Messages, t.PayloadBytes, t.HeaderBytes, rate)
	}
}

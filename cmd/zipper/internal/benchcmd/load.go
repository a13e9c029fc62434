package benchcmd

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/load"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/spec"
)

func loadCommand() *cli.Command {
	return &cli.Command{
		Name: "load", Usage: "a forwarder under thousands of simulated ranks: rates, latency, fairness, memory per link",
		Description: `zipper bench load                              a forwarder of its own on this host, a fresh one for each number of links
zipper bench load --zipper HOST[:PORT]         one that runs already; then without its memory and processor time

Half of the links are one cluster, half another; pairs of them send messages to and fro. The generator needs processors too: on a
small machine rates are those of both together.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "links", Usage: "`LIST` of numbers of links", Value: "2,16,128,1024,4096"},
			&cli.BoolFlag{Name: "slow", Usage: "include the phase in which one receiver does not read", Value: true},
			&cli.IntFlag{Name: "per-host", Usage: "links that claim to be on one host", Value: 1},
			&cli.IntFlag{Name: "size", Usage: "payload of a message, bytes", Value: 8},
			&cli.IntFlag{Name: "window", Usage: "messages in flight for each pair in the rate phase", Value: 8},
			&cli.DurationFlag{Name: "time", Usage: "duration of each phase", Value: 2 * time.Second},
			&cli.StringFlag{Name: "zipper", Aliases: []string{"z"},
				Usage: "`HOST[:PORT]` of a forwarder that runs already"},
			&cli.StringSliceFlag{Name: "forwarder",
				Usage: "`FLAG` for the forwarders started here, such as --loops=1; may be repeated"},
			&cli.StringFlag{Name: "format", Usage: "table, csv or json", Value: "table"},
		},
		Action: benchLoad,
	}
}

func benchLoad(c *cli.Context) error {
	links, err := numbers(c, "links", 2)
	if err != nil {
		return clikit.Usage(err)
	}
	for _, n := range links {
		if n%2 != 0 {
			return clikit.Usage(fmt.Errorf("--links: %d: want even numbers, half of the links are in each cluster", n))
		}
	}
	ctx, cancel := clikit.UntilSignal(c.Context)
	defer cancel()
	var rows []load.Row
	for _, n := range links {
		fmt.Fprintf(os.Stderr, "%d links\n", n)
		o := load.Options{Links: n, Size: c.Int("size"), Window: c.Int("window"), Duration: c.Duration("time"),
			Slow: c.Bool("slow") && n >= 4, PerHost: c.Int("per-host"),
			Job: fmt.Sprintf("load-%d-%d", os.Getpid(), n), Secret: jobenv.NewSecret()}
		row, err := loadRow(ctx, c, o)
		if err != nil {
			return clikit.WithCause(ctx, err)
		}
		rows = append(rows, row)
	}
	env := drive.Describe("none")
	switch c.String("format") {
	case "csv":
		return loadCSV(os.Stdout, rows)
	case "table", "json":
		slope, known := load.Slope(rows)
		v := map[string]any{"environment": env, "size": c.Int("size"), "window": c.Int("window"), "rows": rows}
		if known {
			v["rss_kib_per_link"] = slope
		}
		return emit(c, func(w io.Writer) error {
			fmt.Fprintf(w, "# messages of %d bytes to and fro, window %d; %d CPUs shared by generator and forwarder, load averages %s\n",
				c.Int("size"), c.Int("window"), env.CPUs, env.Load)
			return loadTable(w, rows, slope, known)
		}, v)
	}
	return clikit.Usage(fmt.Errorf("--format %s: want table, csv or json", c.String("format")))
}

// listenTime is how long a forwarder has until it listens.
const listenTime = 10 * time.Second

// loadRow measures on a given forwarder or on a new one.
func loadRow(ctx context.Context, c *cli.Context, o load.Options) (row load.Row, err error) {
	if z := c.String("zipper"); z != "" {
		zipper, err := spec.ParseZipper(z)
		if err != nil {
			return load.Row{}, clikit.Usage(err)
		}
		o.Addr = zipper.Address
		return load.Run(ctx, o)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		return load.Row{}, err
	}
	o.Addr = ln.Addr().String()
	ln.Close()
	self, err := os.Executable()
	if err != nil {
		return load.Row{}, err
	}
	cmd := exec.Command(self, append([]string{"forwarder", "--listen", o.Addr, "--status", "none", "--log", "error",
		"--max-unjoined", strconv.Itoa(o.Links + 1), "--max-unjoined-from", strconv.Itoa(o.Links + 1),
		"--max-links-from", strconv.Itoa(o.Links + 1)},
		c.StringSlice("forwarder")...)...)
	// The log tells of links that were closed at the end, which matters only after a failure.
	var log bytes.Buffer
	cmd.Stderr = &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return load.Row{}, err
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was told to end
		if err != nil && ctx.Err() == nil {
			os.Stderr.Write(log.Bytes())
		}
	}()
	o.PID = cmd.Process.Pid
	for deadline := time.Now().Add(listenTime); ; time.Sleep(listenTime / 1000) {
		conn, err := net.Dial("tcp", o.Addr)
		if err == nil {
			conn.Close()
			return load.Run(ctx, o)
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return load.Row{}, errors.Join(fmt.Errorf("the forwarder does not answer on %s", o.Addr), err)
		}
	}
}

func loadTable(w io.Writer, rows []load.Row, slope float64, known bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "links\tjoin s\tCPU s\tRSS MiB\tsent MB\tlone us\t99 %\tloaded us\t99 %\tmessages/s\tJain\tbeside slow\tCPU us\tRSS KiB\tleave s\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%d\t%.2f\t%.2f\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t%.4f\t%.3f\t%.2f\t%.0f\t%.2f\t\n",
			r.Links, r.JoinS,
			r.JoinCPU, r.JoinKiB/1024, r.JoinSent/1e6,
			r.LatencyUS, r.Latency99, r.LoadedUS, r.Loaded99, r.Rate, r.Jain, r.SlowRatio, r.CPU, r.IdleKiB, r.LeaveS)
	}
	if err := t.Flush(); err != nil || !known {
		return err
	}
	_, err := fmt.Fprintf(w, "# forwarder's memory per link: %.1f KiB (slope over the rows, after traffic)\n", slope)
	return err
}

func loadCSV(w io.Writer, rows []load.Row) error {
	out := csv.NewWriter(w)
	out.Write([]string{"links", "join_s", "latency_us", "latency99_us", "loaded_us", "loaded99_us", "rate", "jain",
		"slow_ratio", "cpu_us", "rss_kib", "rss_before_kib", "join_cpu_s", "join_rss_kib", "join_sent_b", "leave_s"})
	for _, r := range rows {
		line := []string{strconv.Itoa(r.Links)}
		for _, v := range []float64{r.JoinS, r.LatencyUS, r.Latency99, r.LoadedUS, r.Loaded99, r.Rate, r.Jain,
			r.SlowRatio, r.CPU, r.IdleKiB, r.BeforeKiB, r.JoinCPU, r.JoinKiB, r.JoinSent, r.LeaveS} {
			line = append(line, strconv.FormatFloat(v, 'g', 8, 64))
		}
		out.Write(line)
	}
	out.Flush()
	return out.Error()
}

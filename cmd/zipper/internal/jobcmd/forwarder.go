package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/jobforwarder"
	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/monitor"
	"github.com/leidenzipper/zipper/forwarder/reach"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/addr"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Forwarder returns the command zipper forwarder.
func Forwarder() *cli.Command {
	return &cli.Command{
		Name:  "forwarder",
		Usage: "relay between clusters, on a zipper node, until a signal ends it",
		Description: `zipper forwarder                        on all addresses of this host
zipper forwarder --listen 10.1.0.1 --listen 10.2.0.1 --secret-file /etc/zipper/secret
zipper forwarder --listen verbs:10.1.0.1 --listen verbs:10.2.0.1    over InfiniBand or RoCE, on the adapters of these addresses (options: docs/howto/infiniband.md)

It serves any number of jobs at a time. Every job has its own secret, which the forwarder need not know; with
--secret-file only jobs with that secret are served.`,
		Flags: append(forwarderFlags(), &cli.StringFlag{Name: configFlag,
			Usage: "YAML `FILE` with options as keys (listen: [10.1.0.1, 10.2.0.1]); the command line has precedence; read again on SIGHUP or zipper reload"}),
		Action: serveForwarder,
	}
}

// forwarderFlags returns the flags that a configuration file may also have.
func forwarderFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "listen", Aliases: []string{"l"},
			Usage: fmt.Sprintf("`[verbs:][HOST][:PORT]` to listen on (default :%d); may be repeated",
				jobenv.DefaultPort)},
		&cli.StringFlag{Name: "status", Value: fmt.Sprintf("127.0.0.1:%d", monitor.DefaultPort),
			Usage: "`HOST:PORT` at which the forwarder answers zipper status; none: not at all"},
		&cli.BoolFlag{Name: "metrics", Usage: "also serve metrics for Prometheus at the status address (/metrics)"},
		&cli.StringFlag{Name: "accounting", Usage: "append a record of each job that has run to `FILE`, one line of JSON (docs/howto/monitoring.md)"},
		natFlag("whether the kernel of this node"),
		&cli.StringFlag{Name: "secret-file", Usage: "serve only jobs with the secret in `FILE`"},
		&cli.StringFlag{Name: "host-key",
			Usage: "`FILE` with the key by which ranks recognize this forwarder; made if it does not exist; none: a new key at each start (default: host_key in the state directory)"},
		&cli.StringFlag{Name: "ticket-key",
			Usage: "serve only jobs with a ticket signed with the key in `FILE`; its public half is enough (zipper ticket)"},
		&cli.StringSliceFlag{Name: "job", Usage: "serve only job `ID`, and end when it has run; may be repeated"},
		&cli.StringSliceFlag{Name: "dial-allow",
			Usage: "dial other forwarders, for jobs of several hops, on the network `CIDR` only; may be repeated (default: private networks; with --secret-file or --ticket-key all)"},
		&cli.StringSliceFlag{Name: "dial-by",
			Usage: "open links to the forwarder at an address by a shell command, whose standard input and output are the connection: `ADDRESS=COMMAND`, as in gB.example.org='ssh -W localhost:7475 gB.example.org'; may be repeated (docs/howto/two-sites.md)"},
		&cli.IntFlag{Name: "trunk",
			Usage: fmt.Sprintf("connections that carry large frames to another forwarder, in jobs of several hops, if this one dials it: 1 to %d; one more carries small ones (default: one for all within a site, 4 and more over a long path)", trunk.Most)},
		&cli.StringFlag{Name: "protocol",
			Usage: "classic: one transfer at a time, stored whole, one thread; for jobs with --protocol classic only"},
		&cli.StringFlag{Name: "level", Value: wire.LevelPlain.String(),
			Usage: "serve only jobs with this `LEVEL` or a stronger one: plain, checked, sealed"},
		&cli.IntFlag{Name: "loops", Usage: "event-loop threads (default: one for two CPUs, 1 to 4)"},
		&cli.StringFlag{Name: "poll", Value: "adaptive",
			Usage: "how a loop waits: adaptive (spins a little first), event (sleeps at once), busy (never sleeps)"},
		&cli.IntFlag{Name: "nice", Value: -5,
			Usage: "nice value of the event loops, if the system permits it: -20 (highest priority) to 19; 0: that of the process"},
		&cli.DurationFlag{Name: "max-timeout", Value: forwarder.MaxTimeout,
			Usage: "how long a job may gather, even if its ranks have a longer time-out"},
		&cli.IntFlag{Name: "max-ranks", Value: forwarder.MaxRanks, Usage: "ranks of a job, at most"},
		&cli.IntFlag{Name: "max-gathering", Value: forwarder.MaxGathering, Usage: "jobs that gather at once, at most"},
		&cli.IntFlag{Name: "max-gathering-from", Value: forwarder.MaxGatheringFrom,
			Usage: "jobs from one address that gather at once, at most"},
		&cli.IntFlag{Name: "max-jobs", Usage: "jobs that gather or run at once, at most (default: any number)"},
		&cli.IntFlag{Name: "max-jobs-of-user",
			Usage: "jobs of one user that gather or run at once, at most, where tickets name users (--ticket-key; default: any number)"},
		&cli.IntFlag{Name: "max-unjoined",
			Usage: "links that have not joined, at most (default: 8192, or half of the descriptors); beyond that the oldest is closed"},
		&cli.IntFlag{Name: "max-unjoined-from",
			Usage: "links from one address that have not joined, at most (default: 4096, or a quarter of the descriptors)"},
		&cli.IntFlag{Name: "max-links-from",
			Usage: "links from one address, at most (default: half of the descriptors)"},
		&cli.IntFlag{Name: "memory",
			Usage: "`MIB` of data that wait for slow destinations, at most; beyond that the link with most waiting is not read (default: a quarter of the machine's memory)"},
		&cli.IntFlag{Name: "job-memory",
			Usage: "`MIB` of such data for one job (default: 16, or 0.25 for each of its links if that is more)"},
		&cli.StringFlag{Name: "log", Value: "info",
			Usage: "level of the messages on standard error: debug, info, warn, error", EnvVars: []string{"ZIPPER_LOG"}},
	}
}

// natFlag returns the flag --nat, which may be given without a value. whether is the beginning of
// the sentence that describes its values.
func natFlag(whether string) cli.Flag {
	mode := jobforwarder.NATAuto
	return &cli.GenericFlag{Name: natName, Value: &mode,
		Usage: "--nat=auto, --nat=on or --nat=off, with =: " + whether + " forwards connections between ranks; auto does so if it can (nftables, CAP_NET_ADMIN and IP forwarding); --nat alone means on (docs/howto/direct-links.md)"}
}

// natName is the name of natFlag.
const natName = "nat"

// natMode returns the value of natFlag.
func natMode(c *cli.Context) jobforwarder.NAT { return jobforwarder.NAT(c.String(natName)) }

// natMistaken returns an error if --nat was given without a value, and the program has the name of
// one: --nat off PROGRAM.
func natMistaken(mode jobforwarder.NAT, program string) error {
	var value jobforwarder.NAT
	if mode == jobforwarder.NATOn && value.Set(program) == nil {
		return fmt.Errorf("--nat %s: write --nat=%s", program, program)
	}
	return nil
}

// natUnmet returns an error if the kernel must forward connections, but zipper run starts no
// forwarder for the job, or one that relays everything.
func natUnmet(mode jobforwarder.NAT, job *spec.Job) error {
	const starts = "--nat=on is for the forwarder that zipper run starts, but "
	switch {
	case mode != jobforwarder.NATOn:
		return nil
	case len(job.Zippers) > 0:
		return errors.New(starts + "the job names others: give them the option")
	case len(job.Clusters) < 2:
		return errors.New(starts + "a job of one cluster has none")
	}
	return mode.Fits(job.Protocol)
}

// dialler returns the function by which the forwarder connects to others: by the command for the
// address, or on the networks that are allowed. Without either, jobs that hold the operator's
// secret or a ticket may have it connect everywhere, and other jobs to private networks; a
// forwarder that listens on this host only may connect to this host.
func dialler(c *cli.Context, cfg *forwarder.Config, log *zap.Logger) (forwarder.Dial, error) {
	direct, err := directly(c.StringSlice("dial-allow"), cfg)
	if err != nil {
		return nil, err
	}
	commands := map[string]string{}
	for _, s := range c.StringSlice("dial-by") {
		at, line, ok := strings.Cut(s, "=")
		if at == "" || !ok || strings.TrimSpace(line) == "" {
			return nil, fmt.Errorf("--dial-by %s: want ADDRESS=COMMAND", s)
		}
		at = addr.WithPort(at, jobenv.DefaultPort)
		commands[at] = line
		log.Info("links to a forwarder are opened by a command: slower than by TCP", zap.String("forwarder", at),
			zap.String("command", line))
	}
	return func(ctx context.Context, at string, failed func(error)) (transport.Link, error) {
		line, ok := commands[at]
		if !ok {
			return direct(ctx, at, failed)
		}
		return dial.Through(ctx, line, func(output string) {
			log.Warn("output of a command that opens links", zap.String("forwarder", at),
				zap.String("line", wire.Printable(output)))
		}, failed)
	}, nil
}

// directly returns that function without commands.
func directly(networks []string, cfg *forwarder.Config) (forwarder.Dial, error) {
	if len(networks) == 0 && (cfg.Secret != "" || cfg.Ticket != nil) {
		return dial.Open, nil
	}
	allowed := reach.Private
	if len(networks) > 0 {
		allowed = nil
	}
	for _, n := range networks {
		p, err := netip.ParsePrefix(n)
		if err != nil {
			return nil, fmt.Errorf("--dial-allow: %w", err)
		}
		allowed = append(allowed, p)
	}
	here := func(l transport.Listener) bool {
		a, err := netip.ParseAddrPort(l.Addr())
		return err == nil && a.Addr().IsLoopback()
	}
	if len(networks) == 0 && !slices.ContainsFunc(cfg.Listeners, func(l transport.Listener) bool { return !here(l) }) {
		allowed = slices.Concat(allowed, reach.Loopback)
	}
	return reach.Only(allowed, dial.Open), nil
}

// listen opens a listener at [HOST][:PORT], or with verbs: and its options.
func listen(s string) (transport.Listener, error) {
	kind, _ := addr.Split(s)
	if kind == addr.KindVerbs {
		a, err := addr.CompleteVerbs(s, jobenv.DefaultPort)
		if err != nil {
			return nil, clikit.Usage(fmt.Errorf("--listen: %w", err))
		}
		l, err := dial.Listen(a.String())
		if err != nil {
			return nil, fmt.Errorf("cannot listen on %s: %w", s, err)
		}
		return l, nil
	}
	at := addr.WithPort(s, jobenv.DefaultPort)
	if _, _, err := net.SplitHostPort(at); err != nil || kind != addr.KindTCP {
		return nil, clikit.Usage(fmt.Errorf("--listen %s: want [HOST][:PORT]", s))
	}
	l, err := dial.Listen(at)
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("cannot listen on %s: this host does not have that address (zipper doctor lists those that it has)",
			at)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: the port is taken; is another forwarder running? (choose another address or port with --listen)",
			at)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w", at, err)
	}
	return l, nil
}

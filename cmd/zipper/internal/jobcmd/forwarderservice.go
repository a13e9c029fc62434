package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/urfave/cli/v2"
	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/cmd/zipper/internal/jobforwarder"
	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/account"
	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/forwarder/monitor"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/transport"
)

// service is a forwarder as a process that an administrator runs. It handles these signals:
//
//	SIGTERM  ends and leaves its jobs to be resumed, by a forwarder that is started in its place
//	         (systemctl restart) or by their other forwarders; with --job as SIGINT, because nothing
//	         starts such a forwarder again
//	SIGINT   ends with its jobs (zipper stop); those that have another forwarder go on there
//	SIGUSR1  drain: no new jobs; it ends with the last one (zipper drain)
//	SIGHUP   read the configuration file again (zipper reload)
//
// Under systemd it reports when it listens, when it reloads and stops, and, for WatchdogSec, that
// it is alive. It uses sockets that systemd has opened in place of --listen.
type service struct {
	// line has the options of the command line.
	line *cli.Context
	// started has the options at the start.
	started *cli.Context
	cfg     forwarder.Config
	f       *forwarder.Forwarder
	// metrics is nil if none are wanted.
	metrics *monitor.Metrics
	log     *zap.Logger
	level   zap.AtomicLevel
}

func serveForwarder(line *cli.Context) (err error) {
	if line.Args().Present() {
		return clikit.Usage(fmt.Errorf("unexpected argument %q", line.Args().First()))
	}
	c, err := withConfig(line)
	if err != nil {
		return clikit.Usage(err)
	}
	log, level, err := clikit.NewLevelled(c.String("log"))
	if err != nil {
		return err
	}
	cfg, err := forwarderConfig(c)
	if err != nil {
		return clikit.Usage(err)
	}
	cfg.Log, cfg.File = log, line.String(configFlag)
	if cfg.HostKey, err = hostKey(c.String("host-key"), log); err != nil {
		return clikit.Usage(fmt.Errorf("--host-key: %w", err))
	}
	defer func() {
		if err != nil {
			for _, l := range cfg.Listeners {
				err = errors.Join(err, l.Close())
			}
		}
	}()
	if cfg.Listeners, err = listeners(c); err != nil {
		return err
	}
	if cfg.Dial, err = dialler(c, &cfg, log); err != nil {
		return clikit.Usage(err)
	}
	if err := natMode(c).Fits(cfg.Protocol); err != nil {
		return clikit.Usage(err)
	}
	kernel, err := natMode(c).Apply(&cfg)
	if err != nil {
		return err
	}
	defer kernel.Close()
	jobforwarder.SetThreads(max(cfg.Loops, loop.DefaultLoops()))
	var metrics *monitor.Metrics
	if c.Bool("metrics") {
		metrics = monitor.NewMetrics(c.App.Version)
		cfg.Meters = metrics.Meters()
	}
	var f *forwarder.Forwarder
	atEnd := []func(forwarder.Summary){}
	if line.IsSet("job") {
		atEnd = append(atEnd, afterAllJobs(line.StringSlice("job"), func() { f.Drain() }))
	}
	if name := c.String("accounting"); name != "" {
		records, err := account.Open(name, log)
		if err != nil {
			return clikit.Usage(fmt.Errorf("--accounting: %w", err))
		}
		defer records.Close()
		atEnd = append(atEnd, records.JobEnd)
	}
	cfg.JobEnd = func(s forwarder.Summary) {
		for _, f := range atEnd {
			f(s)
		}
	}
	if f, err = forwarder.New(cfg); err != nil {
		return clikit.Usage(err)
	}
	s := &service{line: line, started: c, cfg: cfg, f: f, metrics: metrics, log: log, level: level}
	return s.serve()
}

func (s *service) serve() error {
	// SIGQUIT would print the stacks of all goroutines; a forwarder leaves nothing behind for that.
	ctx, cancel := clikit.UntilSignal(s.line.Context, append(s.handledSignals(), syscall.SIGQUIT)...)
	defer cancel()
	if err := serveStatus(ctx, s.started, s.f, s.metrics, s.log); err != nil {
		return err
	}
	defer s.handleSignals()()
	notify(s.log, daemon.SdNotifyReady)
	s.watch(ctx)
	err := s.f.Serve(ctx)
	notify(s.log, daemon.SdNotifyStopping)
	return err
}

// afterAllJobs returns a function for the forwarder to call at the end of jobs, which calls done
// once all of these jobs have run. A job that never became complete has not run: its halves may be
// started again.
func afterAllJobs(ids []string, done func()) func(forwarder.Summary) {
	var mu sync.Mutex
	left := map[string]bool{}
	for _, id := range ids {
		left[id] = true
	}
	return func(s forwarder.Summary) {
		mu.Lock()
		had := len(left)
		delete(left, handshake.JobID(s.Job))
		over := had > 0 && len(left) == 0
		mu.Unlock()
		if over {
			done()
		}
	}
}

// reloads tells whether SIGHUP means to read the configuration again, and not that a terminal is
// gone.
func (s *service) reloads() bool {
	return s.line.String(configFlag) != "" || os.Getenv("NOTIFY_SOCKET") != ""
}

// handledSignals returns the signals that the forwarder handles in other ways than by the end of a
// context.
func (s *service) handledSignals() []os.Signal {
	list := []os.Signal{syscall.SIGUSR1}
	if s.reloads() {
		list = append(list, syscall.SIGHUP)
	}
	if !s.line.IsSet("job") {
		list = append(list, syscall.SIGTERM)
	}
	return list
}

// handleSignals handles these signals until the function that it returns is called. That must be
// after Serve has returned, so that no signal kills a forwarder that is already ending.
func (s *service) handleSignals() (stop func()) {
	want := s.handledSignals()
	ch := make(chan os.Signal, len(want))
	signal.Notify(ch, want...)
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-over:
				return
			case got := <-ch:
				s.follow(got)
			}
		}
	}()
	return func() {
		signal.Stop(ch)
		close(over)
	}
}

func (s *service) follow(got os.Signal) {
	switch got {
	case syscall.SIGTERM:
		s.log.Info("SIGTERM: jobs are left to be resumed (zipper stop ends them)")
		s.f.Release()
	case syscall.SIGUSR1:
		s.f.Drain()
	case syscall.SIGHUP:
		notify(s.log, daemon.SdNotifyReloading)
		if err := s.reload(); err != nil {
			s.log.Error("the configuration is unchanged, because it cannot be read again", zap.Error(err))
		}
		notify(s.log, daemon.SdNotifyReady)
	}
}

// reload reads the configuration file again and applies it to the forwarder. After an error the
// forwarder continues with its configuration.
func (s *service) reload() error {
	if s.line.String(configFlag) == "" {
		return errors.New("no configuration file to read again (--config)")
	}
	c, err := withConfig(s.line)
	if err != nil {
		return err
	}
	level, err := clikit.ParseLogLevel(c.String("log"))
	if err != nil {
		return err
	}
	cfg, err := forwarderConfig(c)
	if err != nil {
		return err
	}
	cfg.Listeners = s.cfg.Listeners
	if cfg.Dial, err = dialler(c, &cfg, s.log); err != nil {
		return err
	}
	if err := s.f.Reload(cfg); err != nil {
		return err
	}
	s.level.SetLevel(level)
	s.log.Info("configuration read again", zap.String("file", s.line.String(configFlag)))
	if names := needRestart(s.started, c); len(names) > 0 {
		s.log.Warn("these options take effect at the next start: " + strings.Join(names, ", "))
	}
	return nil
}

// watch reports to systemd's watchdog, if it watches this process, that the forwarder is alive,
// until ctx ends.
func (s *service) watch(ctx context.Context) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn("the watchdog cannot be notified", zap.Error(err))
	}
	if within == 0 || err != nil {
		return
	}
	go func() {
		for {
			alive, cancel := context.WithTimeout(ctx, within)
			if s.f.Alive(alive) == nil {
				notify(s.log, daemon.SdNotifyWatchdog)
			}
			cancel()
			select {
			case <-ctx.Done():
				return
			case <-time.After(within / watchdogShare):
			}
		}
	}()
}

// watchdogShare is the number of reports within the watchdog's time, as sd_watchdog_enabled
// recommends.
const watchdogShare = 2

// notify sends a state to systemd, if systemd has started this process.
func notify(log *zap.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd cannot be notified", zap.String("state", state), zap.Error(err))
	}
}

// listeners returns the listeners for links: those of --listen, or sockets that systemd has opened.
func listeners(c *cli.Context) (l []transport.Listener, err error) {
	passed, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("sockets of systemd: %w", err)
	}
	specs := c.StringSlice("listen")
	if len(passed) == 0 && len(specs) == 0 {
		specs = []string{""}
	}
	for _, p := range passed {
		t, ok := p.(*net.TCPListener)
		if !ok {
			return l, errors.New("systemd has passed a socket that does not listen on TCP (ListenStream=[HOST:]PORT)")
		}
		one, err := dial.Listening(t)
		if err != nil {
			return l, fmt.Errorf("a socket of systemd: %w", err)
		}
		l = append(l, one)
	}
	for _, spec := range specs {
		one, err := listen(spec)
		if err != nil {
			return l, err
		}
		l = append(l, one)
	}
	return l, nil
}

// serveStatus answers zipper status until ctx ends. It is an error if a requested address is taken.
// The default address may be taken, because several forwarders may run on one host.
func serveStatus(ctx context.Context, c *cli.Context, f *forwarder.Forwarder, metrics *monitor.Metrics,
	log *zap.Logger) error {
	addr := c.String("status")
	if addr == "none" {
		return nil
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		if c.IsSet("status") {
			return fmt.Errorf("cannot show the status on %s: %w (choose another address with --status)", addr, err)
		}
		log.Warn("the status is not shown; choose another address with --status", zap.Error(err))
		return nil
	}
	log.Info("status", zap.String("address", ln.Addr().String()))
	go func() {
		if err := monitor.Serve(ctx, ln, monitor.Shown{Forwarder: f, Version: "zipper " + c.App.Version,
			Metrics: metrics}); err != nil {
			log.Error("the status is no longer shown", zap.Error(err))
		}
	}()
	return nil
}

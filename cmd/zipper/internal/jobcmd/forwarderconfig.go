package jobcmd

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/keyfile"
	"github.com/leidenzipper/zipper/internal/ticket"
	"github.com/leidenzipper/zipper/internal/wire"
)

// configFlag names the configuration file of a forwarder.
const configFlag = "config"

// maxConfig is the largest size of a configuration file, in bytes.
const maxConfig = 1 << 20

// reloadable are the options that take effect without a restart.
var reloadable = []string{"log", "secret-file", "ticket-key", "job", "dial-allow", "dial-by", "level", "memory",
	"job-memory", "max-timeout", "max-ranks", "max-gathering", "max-gathering-from", "max-jobs", "max-jobs-of-user",
	"max-unjoined", "max-unjoined-from", "max-links-from"}

// withConfig returns the options of the command line and, for options that are not there, those of
// the configuration file, if one is named.
func withConfig(c *cli.Context) (*cli.Context, error) {
	file := c.String(configFlag)
	if file == "" {
		return c, nil
	}
	flags := forwarderFlags()
	options := flag.NewFlagSet(c.Command.Name, flag.ContinueOnError)
	for _, f := range flags {
		if err := f.Apply(options); err != nil {
			return nil, err
		}
	}
	all := cli.NewContext(c.App, options, nil)
	all.Command = c.Command
	given := map[string]bool{} // on the command line, or in the environment
	for _, f := range flags {
		name := f.Names()[0]
		if !c.IsSet(name) {
			continue
		}
		given[name] = true
		if err := set(all, f, values(c, f)); err != nil {
			return nil, err
		}
	}
	read, err := readConfig(file)
	if err != nil {
		return nil, err
	}
	for _, o := range read {
		at := slices.IndexFunc(flags, func(f cli.Flag) bool { return f.Names()[0] == o.name })
		switch {
		case at < 0:
			return nil, fmt.Errorf("%s:%d: there is no option %q (zipper forwarder --help)", file, o.line, o.name)
		case given[o.name]:
			continue
		}
		if err := set(all, flags[at], o.values); err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", file, o.line, o.name, err)
		}
	}
	return all, nil
}

// set sets an option. A list is set at once, because single values would be split at their commas.
func set(c *cli.Context, f cli.Flag, values []string) error {
	if _, list := f.(*cli.StringSliceFlag); list {
		values = []string{cli.NewStringSlice(values...).Serialize()}
	}
	for _, v := range values {
		if err := c.Set(f.Names()[0], v); err != nil {
			return err
		}
	}
	return nil
}

// values returns the values by which an option can be set to its present value.
func values(c *cli.Context, f cli.Flag) []string {
	name := f.Names()[0]
	if _, list := f.(*cli.StringSliceFlag); list {
		return c.StringSlice(name)
	}
	return []string{fmt.Sprint(c.Value(name))}
}

// option is an option of a configuration file.
type option struct {
	name   string
	values []string
	line   int
}

// readConfig reads a configuration file: a mapping from options to values or lists of them.
func readConfig(file string) (options []option, err error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxConfig {
		err = &fs.PathError{Op: "read", Path: file, Err: errors.New("too long for a configuration")}
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", configFlag, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", configFlag, err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(doc.Content) == 0 { // the file is empty, or has comments only
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want lines such as level: sealed", file, root.Line)
	}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		o := option{name: key.Value, line: key.Line}
		if slices.ContainsFunc(options, func(p option) bool { return p.name == o.name }) {
			return nil, fmt.Errorf("%s:%d: %s is given twice", file, o.line, o.name)
		}
		items := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			items = value.Content
		}
		for _, n := range items {
			if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
				return nil, fmt.Errorf("%s:%d: %s: want a value or a list of values", file, n.Line, o.name)
			}
			o.values = append(o.values, n.Value)
		}
		options = append(options, o)
	}
	return options, nil
}

// needRestart returns the options that differ between two configurations and take effect at a start
// only.
func needRestart(was, is *cli.Context) (names []string) {
	for _, f := range forwarderFlags() {
		name := f.Names()[0]
		if !slices.Contains(reloadable, name) && !slices.Equal(values(was, f), values(is, f)) {
			names = append(names, "--"+name)
		}
	}
	return names
}

// maxMiB is the largest memory that can be configured, in MiB.
const maxMiB = 1 << 30

// forwarderConfig returns the configuration of the options, without Log, NAT, HostKey, Listeners
// and Dial, which need the system.
func forwarderConfig(c *cli.Context) (cfg forwarder.Config, err error) {
	if c.String("status") == "" {
		return cfg, errors.New("--status: want HOST:PORT, or none")
	}
	if c.Int("loops") < 0 {
		return cfg, errors.New("--loops: want a positive number")
	}
	for _, name := range []string{"memory", "job-memory"} {
		if n := c.Int(name); n < 0 || c.IsSet(name) && n == 0 || n > maxMiB {
			return cfg, fmt.Errorf("--%s %d: want 1 to %d MiB", name, n, maxMiB)
		}
	}
	cfg = forwarder.Config{Memory: int64(c.Int("memory")) << 20, JobMemory: int64(c.Int("job-memory")) << 20,
		Loops: c.Int("loops"), Nice: c.Int("nice"),
		Poll: c.String("poll"), Protocol: c.String("protocol"), Jobs: c.StringSlice("job"),
		Trunk:      c.Int("trunk"),
		MaxTimeout: c.Duration("max-timeout"), MaxRanks: c.Int("max-ranks"),
		MaxGathering: c.Int("max-gathering"), MaxGatheringFrom: c.Int("max-gathering-from"),
		MaxJobs: c.Int("max-jobs"), MaxJobsOf: c.Int("max-jobs-of-user"),
		MaxUnjoined: c.Int("max-unjoined"), MaxUnjoinedFrom: c.Int("max-unjoined-from"),
		MaxLinksFrom: c.Int("max-links-from")}
	if cfg.Level, err = wire.ParseLevel(c.String("level")); err != nil {
		return cfg, fmt.Errorf("--level: %w", err)
	}
	if f := c.String("secret-file"); f != "" {
		if cfg.Secret, err = clikit.ReadSecret(f); err != nil {
			return cfg, err
		}
	}
	if f := c.String("ticket-key"); f != "" {
		site, err := keyfile.Public(f)
		if err != nil {
			return cfg, fmt.Errorf("--ticket-key: %w", err)
		}
		cfg.Ticket = func(j *wire.Join) (string, error) { return ticket.Check(j, site, time.Now()) }
	}
	if cfg.MaxJobsOf > 0 && cfg.Ticket == nil {
		return cfg, errors.New("--max-jobs-of-user requires --ticket-key, because tickets name the users")
	}
	return cfg, nil
}

package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/wire"
)

// file is the job file's form. Unknown keys are errors.
type file struct {
	Job      string            `yaml:"job"`
	Secret   string            `yaml:"secret_file"`
	Ticket   string            `yaml:"ticket_file"`
	Program  command           `yaml:"program"`
	Timeout  duration          `yaml:"timeout"`
	Poll     string            `yaml:"poll"`
	Protocol string            `yaml:"protocol"`
	Level    string            `yaml:"level"`
	Patience string            `yaml:"patience"`
	Log      string            `yaml:"log"`
	Env      map[string]string `yaml:"env"`
	Rsh      command           `yaml:"rsh"`
	Networks []string          `yaml:"networks"`
	Zippers  []fileZipper      `yaml:"zippers"`
	Clusters []fileCluster     `yaml:"clusters"`
}

type fileZipper struct {
	Address   string            `yaml:"address"`
	Addresses map[string]string `yaml:"addresses"`
	Clusters  []string          `yaml:"clusters"`
	Networks  []string          `yaml:"networks"`
	Dial      command           `yaml:"dial"`
	HostKey   string            `yaml:"fingerprint"`
}

type fileCluster struct {
	Name     string            `yaml:"name"`
	Ranks    count             `yaml:"ranks"`
	MPI      MPI               `yaml:"mpi"`
	Hosts    string            `yaml:"hosts"`
	Launcher string            `yaml:"launcher"`
	Login    string            `yaml:"login"`
	Program  command           `yaml:"program"`
	Mpirun   string            `yaml:"mpirun"`
	Args     []string          `yaml:"args"`
	Env      map[string]string `yaml:"env"`
	Zipper   string            `yaml:"zipper"`
	Dir      string            `yaml:"dir"`
	Dual     command           `yaml:"dual"`
	Batch    []string          `yaml:"batch"`
}

// command is a list of words, or one string that is split at white space.
type command []string

// UnmarshalYAML takes both forms.
func (c *command) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*c = strings.Fields(n.Value)
		return nil
	}
	return n.Decode((*[]string)(c))
}

// count is a whole number: the YAML package would cut the fraction off.
type count int

// UnmarshalYAML demands one.
func (c *count) UnmarshalYAML(n *yaml.Node) error {
	if n.ShortTag() != "!!int" || n.Decode((*int)(c)) != nil {
		return unwanted(n, "ranks", "a whole number")
	}
	return nil
}

// duration is a positive one with its unit.
type duration time.Duration

// UnmarshalYAML demands one.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || v <= 0 {
		return unwanted(n, "timeout", "a positive duration with its unit, such as 60s")
	}
	*d = duration(v)
	return nil
}

// UnmarshalText takes a zipper that is no more than its address. (UnmarshalYAML would have to
// decode the other form itself, and then accept unknown keys.)
func (z *fileZipper) UnmarshalText(b []byte) error {
	z.Address = string(b)
	return nil
}

// ReadFile reads a job file. Paths in it are relative to the current directory, as on a command
// line.
func ReadFile(name string) (*Job, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("job file: %w", err)
	}
	j, err := parseFile(b)
	if err != nil {
		return nil, fmt.Errorf("job file %s: %w", name, err)
	}
	return j, nil
}

func parseFile(b []byte) (*Job, error) {
	var f file
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty")
		}
		return nil, explain(err)
	}
	j := &Job{ID: f.Job, Program: f.Program, Timeout: time.Duration(f.Timeout), Poll: f.Poll, Protocol: f.Protocol,
		Level: f.Level, Patience: f.Patience,
		Log: f.Log, Env: f.Env, Rsh: f.Rsh, Networks: f.Networks}
	switch f.Poll {
	case "", "adaptive", "busy", "event":
	default:
		return nil, fmt.Errorf("poll: %s: want adaptive, busy or event", f.Poll)
	}
	if f.Secret != "" {
		var err error
		if j.Secret, err = jobenv.ReadSecret(f.Secret); err != nil {
			return nil, fmt.Errorf("secret_file: %w", err)
		}
	}
	if f.Ticket != "" {
		var err error
		if j.Ticket, err = jobenv.ReadTicket(f.Ticket); err != nil {
			return nil, fmt.Errorf("ticket_file: %w", err)
		}
	}
	for i, z := range f.Zippers {
		out := Zipper{Per: map[string]string{}, Networks: append(z.Clusters, z.Networks...), Dials: z.Dial,
			HostKey: z.HostKey}
		var err error
		if a, key, ok := strings.Cut(z.Address, "#"); ok && out.HostKey == "" {
			z.Address, out.HostKey = a, key
		}
		if out.HostKey != "" {
			if _, err := wire.ParseHostKey(out.HostKey); err != nil {
				return nil, fmt.Errorf("zippers[%d], fingerprint: %w", i, err)
			}
		}
		if z.Address != "" || len(z.Addresses) == 0 {
			if out.Address, err = address(z.Address); err != nil {
				return nil, fmt.Errorf("zippers[%d]: %w", i, err)
			}
		}
		for name, a := range z.Addresses {
			if out.Per[name], err = address(a); err != nil {
				return nil, fmt.Errorf("zippers[%d], addresses, %s: %w", i, name, err)
			}
		}
		j.Zippers = append(j.Zippers, out)
	}
	for _, c := range f.Clusters {
		dual, err := jobenv.ParseDual(strings.Join(c.Dual, "+"))
		if err != nil {
			return nil, fmt.Errorf("cluster %s, dual: %w", c.Name, err)
		}
		j.Clusters = append(j.Clusters, Cluster{Name: c.Name, Ranks: int(c.Ranks), MPI: c.MPI, Hosts: c.Hosts,
			Launcher: c.Launcher, Login: c.Login,
			Program: c.Program, Mpirun: c.Mpirun, Args: c.Args, Env: c.Env, Zipper: c.Zipper, Dir: c.Dir, Dual: dual,
			Batch: c.Batch})
	}
	return j, nil
}

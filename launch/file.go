package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leidenzipper/zipper/launch/jobenv"
)

// file is the job file's form. Unknown keys are errors.
type file struct {
	Job      string            `yaml:"job"`
	Secret   string            `yaml:"secret_file"`
	Program  command           `yaml:"program"`
	Timeout  time.Duration     `yaml:"timeout"`
	Poll     string            `yaml:"poll"`
	Protocol string            `yaml:"protocol"`
	Log      string            `yaml:"log"`
	Env      map[string]string `yaml:"env"`
	Rsh      command           `yaml:"rsh"`
	Zippers  []fileZipper      `yaml:"zippers"`
	Clusters []fileCluster     `yaml:"clusters"`
}

type fileZipper struct {
	Address   string            `yaml:"address"`
	Addresses map[string]string `yaml:"addresses"`
	Clusters  []string          `yaml:"clusters"`
}

type fileCluster struct {
	Name     string            `yaml:"name"`
	Ranks    int               `yaml:"ranks"`
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

// ReadFile reads a job file. Paths in it are relative to the current directory, as on a command line.
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
	j := &Job{ID: f.Job, Program: f.Program, Timeout: f.Timeout, Poll: f.Poll, Protocol: f.Protocol, Log: f.Log, Env: f.Env, Rsh: f.Rsh}
	if f.Timeout < 0 {
		return nil, fmt.Errorf("timeout: %v: want a positive duration such as 60s", f.Timeout)
	}
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
	for i, z := range f.Zippers {
		out := Zipper{Per: map[string]string{}, Clusters: z.Clusters}
		var err error
		if z.Address != "" {
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
		j.Clusters = append(j.Clusters, Cluster{Name: c.Name, Ranks: c.Ranks, MPI: c.MPI, Hosts: c.Hosts, Launcher: c.Launcher, Login: c.Login,
			Program: c.Program, Mpirun: c.Mpirun, Args: c.Args, Env: c.Env, Zipper: c.Zipper, Dir: c.Dir, Dual: dual})
	}
	return j, nil
}

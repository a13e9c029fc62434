package contend

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/bench/transfer"
	"github.com/leidenzipper/zipper/launch"
)

// Open starts agents on all hosts of a job's clusters and on its zipper nodes, through the job's remote shell. Host files and addresses of
// zippers must be given; the names must be known in the networks. Close the site's session in any case when the error is nil.
func Open(job *launch.Job) (*Site, error) {
	rsh := job.Rsh
	if len(rsh) == 0 {
		rsh = []string{"ssh", "-o", "BatchMode=yes"}
	}
	if len(job.Clusters) < 2 || len(job.Zippers) == 0 {
		return nil, errors.New("the job file must name two clusters or more and the zippers between them")
	}
	s := &Site{Name: "site"}
	var hosts []transfer.Host
	add := func(host, cluster, zipper string) {
		words := append(append([]string{}, rsh[1:]...), host, launch.Quote(zipper), "bench", "agent")
		h := transfer.Host{Name: host, Cluster: cluster, Agent: exec.Command(rsh[0], words...)}
		h.Agent.Stderr = os.Stderr
		hosts = append(hosts, h)
	}
	for _, c := range job.Clusters {
		if c.Hosts == "" {
			return nil, fmt.Errorf("cluster %s has no host file: its hosts are what is measured", c.Name)
		}
		names, cores, err := hostFile(c.Hosts)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		s.Clusters = append(s.Clusters, Cluster{c.Name, names, cores})
		for _, h := range names {
			add(h, c.Name, c.ZipperPath())
		}
	}
	var forwarders []transfer.Forwarder
	for _, z := range job.Zippers {
		f := transfer.Forwarder{Address: map[string]string{}}
		for _, c := range job.Clusters {
			f.Address[c.Name] = z.AddressFor(c.Name)
		}
		host, _, err := net.SplitHostPort(z.AddressFor(job.Clusters[0].Name))
		if err != nil {
			return nil, fmt.Errorf("zipper %s: %w", z.AddressFor(job.Clusters[0].Name), err)
		}
		f.Name = host
		forwarders = append(forwarders, f)
		s.Zippers = append(s.Zippers, Zipper{Name: host})
		add(host, "", job.Clusters[0].ZipperPath())
	}
	var err error
	s.Session, err = transfer.Open(hosts, forwarders)
	return s, err
}

// hostFile reads Open MPI's and MPICH's form: a host a line, with slots=N or :N; cores is the least of these.
func hostFile(path string) (names []string, cores int, err error) {
	path, _ = filepath.Abs(path)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		name, n, ok := strings.Cut(f[0], ":")
		for _, option := range f[1:] {
			if v, found := strings.CutPrefix(option, "slots="); found {
				n, ok = v, true
			}
		}
		slots := 1
		if ok {
			if slots, err = strconv.Atoi(n); err != nil || slots < 1 {
				return nil, 0, fmt.Errorf("%s: %q is no number of slots", path, n)
			}
		}
		names = append(names, name)
		if cores == 0 || slots < cores {
			cores = slots
		}
	}
	if names == nil {
		return nil, 0, fmt.Errorf("%s names no host", path)
	}
	return names, cores, nil
}

package contend

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"

	"github.com/leidenzipper/zipper/bench/transfer"
	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Open starts agents on all hosts of a job's clusters and on its zipper nodes, through the job's
// remote shell. Host files and addresses of zippers must be given, and the names must be known in
// the networks. The caller must close the site's session when the error is nil.
func Open(job *spec.Job) (*Site, error) {
	rsh := job.RemoteShell()
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
			return nil, fmt.Errorf("cluster %s has no host file, whose hosts are measured", c.Name)
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

// hostFile returns the hosts of a cluster; cores is the least number of slots of any host.
func hostFile(path string) (names []string, cores int, err error) {
	hosts, err := spec.ReadHosts(path)
	if err != nil {
		return nil, 0, err
	}
	for _, h := range hosts {
		slots := 1
		if h.Slots != "" {
			if slots, err = strconv.Atoi(h.Slots); err != nil || slots < 1 {
				return nil, 0, fmt.Errorf("%s: %q is not a number of slots", path, h.Slots)
			}
		}
		names = append(names, h.Name)
		if cores == 0 || slots < cores {
			cores = slots
		}
	}
	return names, cores, nil
}

package spec

import (
	"os"
	"strings"
)

// Here tells whether all processes of the cluster, if it is started from this host, are on this
// host.
func (c Cluster) Here() bool { return c.Hosts == "" && c.Group == "" && !spread(os.Getenv) }

// spread tells whether the batch system has given this job other hosts than this one: mpirun finds
// them by itself and places ranks there, without a host file. get reads the environment.
func spread(get func(string) string) bool {
	self, err := os.Hostname()
	if err != nil {
		return true
	}
	for _, host := range allocation(get) {
		if short(host) != short(self) {
			return true
		}
	}
	return false
}

// allocation returns the hosts that the batch system has given to the job. It returns nil without a
// batch system, or if the system is unknown.
func allocation(get func(string) string) []string {
	file := func(name string) (hosts []string) {
		b, _ := os.ReadFile(name) // mpirun complains if it cannot be read
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 0 {
				hosts = append(hosts, f[0]) // slots may follow
			}
		}
		return hosts
	}
	switch {
	case get("SLURM_JOB_NODELIST") != "":
		hosts, err := ExpandHosts(get("SLURM_JOB_NODELIST"))
		if err != nil { // an unknown form of Slurm's list, so no host's name
			return []string{get("SLURM_JOB_NODELIST")}
		}
		return hosts
	case get("PBS_NODEFILE") != "":
		return file(get("PBS_NODEFILE"))
	case get("PE_HOSTFILE") != "": // Grid Engine
		return file(get("PE_HOSTFILE"))
	}
	var hosts []string
	for i, word := range strings.Fields(get("LSB_MCPU_HOSTS")) { // LSF: each host with its number of slots
		if i%2 == 0 {
			hosts = append(hosts, word)
		}
	}
	return hosts
}

// short returns a host's name without its domain.
func short(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}

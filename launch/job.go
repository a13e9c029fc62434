// Package launch starts the clusters of one job: from a job description it works out each cluster's native
// command line, starts and watches it, and leaves nothing behind, whatever way the job ends.
package launch

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/transport/verbs"
	"github.com/leidenzipper/zipper/wire"
)

// Job describes one MPI world over several clusters.
type Job struct {
	ID       string // any word; made up when empty
	Secret   string // made up when empty
	Clusters []Cluster
	// Order is that of the ranks of MPI_COMM_WORLD: the cluster of each, in runs (jobenv.ParseOrder). Empty: that of virtual rank.
	Order []jobenv.Cluster
	// Zippers are the forwarders. Empty: one is started on this host for the time of the job.
	Zippers     []Zipper
	Program     []string      // program and arguments, for clusters that have none of their own
	Timeout     time.Duration // how long a cluster waits for the others to join; 0 = 60 s
	Poll        string        // ZIPPER_POLL of every process
	Protocol    string        // ZIPPER_PROTOCOL of every process and, if it is started here, of the forwarder
	Collectives string        // ZIPPER_COLLECTIVES of every process
	Log         string        // ZIPPER_LOG of every process
	Env         map[string]string
	Rsh         []string // the remote shell for launcher ssh and zippers with a login; empty = ssh -o BatchMode=yes
}

// Cluster is one native MPI job.
type Cluster struct {
	Name     string
	Ranks    int
	MPI      MPI               // empty: found out from the program and from what is installed
	Hosts    string            // host file in the native MPI's own form; empty: the hosts that the batch system gave, or this one (ssh: the login host) alone
	InOrder  bool              // Hosts names a host for each native rank, one a line
	Launcher string            // "mpirun" (default): start it from here; "ssh": log in to Login and start it there
	Login    string            // host for launcher ssh; empty: the first host of Hosts
	Program  []string          // program and arguments; empty: those of the job
	Mpirun   string            // the launcher program itself; empty: found on PATH
	Args     []string          // extra arguments for it, after ours, so that they win
	Env      map[string]string // for this cluster's processes
	Zipper   string            // path of the zipper command on the cluster's nodes; empty: as here
	Dir      string            // working directory; empty: the current one
	Dual     []jobenv.Dual     // addresses of its zipper nodes on the networks of other clusters: ranks there take direct links
}

// Zipper is one forwarder.
type Zipper struct {
	Address string            // HOST:PORT as the clusters reach it
	Per     map[string]string // other addresses for some clusters: a zipper node is known by a different one on each network
	// Clusters are those on whose networks it is; empty: those that have an address, which is all if Address is not empty.
	Clusters []string
}

// MPI names a native MPI library.
type MPI string

// The libraries there is a shim for.
const (
	OpenMPI MPI = "openmpi"
	MPICH   MPI = "mpich"
)

// ParseMPI checks a name.
func ParseMPI(s string) (MPI, error) {
	switch m := MPI(s); m {
	case OpenMPI, MPICH:
		return m, nil
	}
	return "", fmt.Errorf("mpi=%q: want openmpi or mpich", s)
}

// String is the library's own spelling.
func (m MPI) String() string {
	switch m {
	case OpenMPI:
		return "Open MPI"
	case MPICH:
		return "MPICH"
	case "":
		return "its own MPI"
	}
	return string(m)
}

const clusterForm = "NAME=RANKS[,mpi=openmpi|mpich][,hosts=FILE][,program=PATH][,launcher=mpirun|ssh][,login=HOST][,dir=DIR][,dual=[CLUSTER@]HOST[:PORT][+...]]"

// ParseCluster reads the value of a --cluster flag.
func ParseCluster(s string) (Cluster, error) {
	bad := func(why string) (Cluster, error) {
		return Cluster{}, fmt.Errorf("--cluster %s: %s; the form is %s", s, why, clusterForm)
	}
	var c Cluster
	for i, part := range strings.Split(s, ",") {
		key, val, ok := strings.Cut(part, "=")
		if !ok || val == "" {
			return bad(fmt.Sprintf("%q is no KEY=VALUE", part))
		}
		if i == 0 {
			n, err := strconv.Atoi(val)
			if err != nil {
				return bad(fmt.Sprintf("%q is no number of ranks", val))
			}
			c.Name, c.Ranks = key, n
			continue
		}
		switch key {
		case "mpi":
			m, err := ParseMPI(val)
			if err != nil {
				return bad(err.Error())
			}
			c.MPI = m
		case "hosts":
			c.Hosts = val
		case "program":
			c.Program = []string{val}
		case "launcher":
			c.Launcher = val
		case "login":
			c.Login = val
		case "dir":
			c.Dir = val
		case "dual":
			var err error
			if c.Dual, err = jobenv.ParseDual(val); err != nil {
				return bad("dual: " + err.Error())
			}
		default:
			return bad(fmt.Sprintf("unknown key %q", key))
		}
	}
	return c, nil
}

// ParseZipper reads HOST[:PORT], HOST[:PORT]=a,b or a@HOST[:PORT]+b@HOST[:PORT].
func ParseZipper(s string) (Zipper, error) {
	plain, net, err := jobenv.ParseZipper(s)
	if err != nil {
		return Zipper{}, err
	}
	if len(net.Ports) == 0 {
		a, err := address(plain)
		return Zipper{Address: a}, err
	}
	z := Zipper{Per: map[string]string{}}
	for _, p := range net.Ports {
		if z.Per[p.Cluster], err = address(p.Address); err != nil {
			return Zipper{}, err
		}
	}
	return z, nil
}

// address adds the default port where none is given.
func address(s string) (string, error) {
	if s == "" {
		return "", errors.New("an empty forwarder address; want HOST[:PORT]")
	}
	if strings.HasPrefix(s, "-") {
		return "", fmt.Errorf("forwarder %q: that is a flag, no address; want HOST[:PORT], as in zip1 or zip1:%d", s, jobenv.DefaultPort)
	}
	if strings.HasPrefix(s, "unix:") {
		return s, nil
	}
	if strings.HasPrefix(s, verbs.Scheme) {
		a, err := verbs.CompleteAddress(s, jobenv.DefaultPort)
		if err != nil || strings.HasPrefix(a.Host, ":") {
			return "", fmt.Errorf("forwarder %q: want verbs:HOST[:PORT], as in verbs:zip1 or verbs:zip1:%d (%v)", s, jobenv.DefaultPort, err)
		}
		return a.String(), nil
	}
	if ip := net.ParseIP(s); ip != nil || !strings.Contains(s, ":") {
		return net.JoinHostPort(s, strconv.Itoa(jobenv.DefaultPort)), nil
	}
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.Atoi(port)
	if err != nil || perr != nil || host == "" || n < 1 || n > 65535 {
		return "", fmt.Errorf("forwarder %q: want HOST[:PORT], as in zip1 or zip1:%d", s, jobenv.DefaultPort)
	}
	return s, nil
}

var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Normalize fills in what is empty and checks the whole. The error says what to change.
func (j *Job) Normalize() error {
	if j.ID == "" {
		j.ID = randomHex(6)
	}
	if j.Secret == "" {
		j.Secret = randomHex(16)
	}
	if j.Timeout == 0 {
		j.Timeout = 60 * time.Second
	}
	if !word.MatchString(j.ID) {
		return fmt.Errorf("job id %q: use letters, digits, '.', '_' and '-'", j.ID)
	}
	if err := jobenv.ParseProtocol(j.Protocol); err != nil {
		return err
	}
	if j.Protocol != "" && len(j.Zippers) > 1 {
		return fmt.Errorf("protocol %s works with one zipper; the job has %d", j.Protocol, len(j.Zippers))
	}
	if j.Timeout < 0 {
		return fmt.Errorf("timeout %v: want a positive duration such as 60s", j.Timeout)
	}
	if len(j.Clusters) == 0 {
		return errors.New("no clusters: give at least one, as in --cluster a=2 --cluster b=2,mpi=mpich")
	}
	names, total := map[string]bool{}, 0
	j.Clusters = slices.Clone(j.Clusters) // the caller's stay as they are
	for i := range j.Clusters {
		c := &j.Clusters[i]
		if err := c.normalize(j); err != nil {
			return err
		}
		if names[c.Name] {
			return fmt.Errorf("cluster %q is given twice: every cluster needs a name of its own", c.Name)
		}
		names[c.Name] = true
		if total += c.Ranks; total > wire.MaxRanks {
			return fmt.Errorf("the clusters have more than %d ranks together, which is the most in one job", wire.MaxRanks)
		}
	}
	if err := jobenv.CheckOrder(j.Order, j.Layout()); err != nil {
		return err
	}
	if jobenv.VirtualRanks(j.Order, j.Layout()) == nil {
		j.Order = nil
	}
	for _, z := range j.Zippers {
		for name := range z.Per {
			if !names[name] {
				return fmt.Errorf("zipper %s is named for cluster %q, which the job does not have", z.Per[name], name)
			}
		}
		for _, name := range z.Clusters {
			if !names[name] {
				return fmt.Errorf("a zipper is said to be on the network of cluster %q, which the job does not have", name)
			}
			if z.AddressFor(name) == "" {
				return fmt.Errorf("a zipper has no address for cluster %q: give it address: HOST[:PORT], or one under addresses:", name)
			}
		}
	}
	for name := range names {
		known := map[string]bool{}
		for _, z := range j.Zippers {
			a := z.AddressFor(name)
			if a != "" && known[a] {
				return fmt.Errorf("zipper %s is given twice", a)
			}
			known[a] = true
		}
	}
	for _, c := range j.Clusters {
		err := jobenv.CheckDual(c.Dual, c.Name, j.Layout())
		if err == nil && len(c.Dual) > 0 && j.Protocol != "" {
			err = fmt.Errorf("protocol %s has no direct links", j.Protocol)
		}
		if err != nil {
			return fmt.Errorf("cluster %s: dual: %w", c.Name, err)
		}
	}
	if hops := j.hops(); hops != nil {
		if _, _, err := jobenv.Rows(j.Layout(), hops); err != nil {
			return fmt.Errorf("%w (a zipper that has no address for a cluster, or does not have it under clusters:, is not on its network)", err)
		}
	}
	if len(j.Rsh) == 0 {
		j.Rsh = []string{"ssh", "-o", "BatchMode=yes"} // it has no terminal to ask on: a question for a password would only be waited for
	}
	return nil
}

func (c *Cluster) normalize(j *Job) error {
	if !word.MatchString(c.Name) {
		return fmt.Errorf("cluster name %q: use letters, digits, '.', '_' and '-'", c.Name)
	}
	if c.Ranks < 1 || c.Ranks > wire.MaxRanks {
		return fmt.Errorf("cluster %s: %d ranks; want at least 1 and at most %d", c.Name, c.Ranks, wire.MaxRanks)
	}
	if c.MPI != "" {
		if _, err := ParseMPI(string(c.MPI)); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	switch {
	case c.Launcher == "" && c.Login != "":
		c.Launcher = "ssh"
	case c.Launcher == "":
		c.Launcher = "mpirun"
	}
	if !slices.Contains([]string{"mpirun", "ssh"}, c.Launcher) {
		return fmt.Errorf("cluster %s: launcher=%s: want mpirun (start it from this host) or ssh (log in to one of its hosts first)", c.Name, c.Launcher)
	}
	if c.Launcher == "mpirun" && c.Login != "" {
		return fmt.Errorf("cluster %s: login=%s is for launcher=ssh", c.Name, c.Login)
	}
	switch {
	case len(c.Program) == 0:
		c.Program = slices.Clone(j.Program)
	case len(c.Program) == 1 && len(j.Program) > 1:
		c.Program = append(slices.Clone(c.Program), j.Program[1:]...) // program= replaces the program, not its arguments
	}
	if len(c.Program) == 0 || c.Program[0] == "" {
		return fmt.Errorf("cluster %s has no program: give one after --, or program=PATH for this cluster", c.Name)
	}
	return nil
}

// AddressFor is the forwarder's address as the cluster reaches it; empty: it is not on the cluster's network.
func (z Zipper) AddressFor(cluster string) string {
	if len(z.Clusters) > 0 && !slices.Contains(z.Clusters, cluster) {
		return ""
	}
	if a := z.Per[cluster]; a != "" {
		return a
	}
	return z.Address
}

// Layout is the job's clusters in order of virtual rank.
func (j *Job) Layout() []jobenv.Cluster {
	var l []jobenv.Cluster
	for _, c := range j.Clusters {
		l = append(l, jobenv.Cluster{Name: c.Name, Size: c.Ranks})
	}
	return l
}

// Offset is the virtual rank of the cluster's native rank 0.
func (j *Job) Offset(cluster string) int {
	n := 0
	for _, c := range j.Clusters {
		if c.Name == cluster {
			break
		}
		n += c.Ranks
	}
	return n
}

// Share is what the processes of one cluster learn of the job.
func (j *Job) Share(cluster string) jobenv.Job {
	s := jobenv.Job{ID: j.ID, Secret: j.Secret, Cluster: cluster, Layout: j.Layout(), Order: j.Order, Timeout: j.Timeout, Log: j.Log, Poll: j.Poll, Protocol: j.Protocol, Collectives: j.Collectives}
	for _, c := range j.Clusters {
		if c.Name == cluster {
			s.Dual = c.Dual
		}
	}
	if hops := j.hops(); hops != nil {
		s.WithZippers(hops)
		return s
	}
	for _, z := range j.Zippers {
		s.Forwarders = append(s.Forwarders, z.AddressFor(cluster))
	}
	return s
}

// hops are the zippers of a job with several hops; nil: all of them are on the networks of all clusters.
func (j *Job) hops() []jobenv.Zipper {
	some := false
	var zippers []jobenv.Zipper
	for _, z := range j.Zippers {
		var out jobenv.Zipper
		for _, c := range j.Clusters {
			a := z.AddressFor(c.Name)
			if some = some || a == "" && len(j.Clusters) > 1; a != "" {
				out.Ports = append(out.Ports, jobenv.Port{Cluster: c.Name, Address: a})
			}
		}
		zippers = append(zippers, out)
	}
	if !some {
		return nil
	}
	return zippers
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // crypto/rand.Read never fails: it ends the process instead
	return hex.EncodeToString(b)
}

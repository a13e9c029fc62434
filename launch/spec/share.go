package spec

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

// Layout returns the job's clusters in the order of virtual ranks.
func (j *Job) Layout() []jobenv.Cluster {
	var l []jobenv.Cluster
	for _, c := range j.Clusters {
		l = append(l, jobenv.Cluster{Name: c.Name, Size: c.Ranks})
	}
	return l
}

// Offset returns the virtual rank of the cluster's native rank 0.
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

// Share returns the description of the job for the processes of one cluster.
func (j *Job) Share(cluster string) jobenv.Job {
	s := jobenv.Job{ID: j.ID, Secret: j.Secret, Ticket: j.Ticket, Origin: jobenv.Origin(os.Getenv, os.Getuid()),
		Cluster: cluster, Layout: j.Layout(), Order: j.Order, Networks: j.Networks,
		Timeout: j.Timeout, Log: j.Log, Poll: j.Poll, Protocol: j.Protocol, Level: j.Level, Patience: j.Patience,
		OnLoss: j.OnLoss, Quorum: j.Quorum,
		Collectives: j.Collectives, Appnum: strconv.Itoa(j.appnum(cluster))}
	allow := []string{os.Getenv(jobenv.VarDirectAllow)}
	for _, c := range j.Clusters {
		if c.Name == cluster {
			s.Dual = c.Dual
		} else {
			allow = append(allow, jobenv.Reached(c.Dual, cluster))
		}
	}
	allow = slices.DeleteFunc(allow, func(s string) bool { return s == "" })
	s.DirectAllow = strings.Join(allow, ",")
	if hops := j.hops(); hops != nil {
		s.WithZippers(hops)
		return s
	}
	for _, z := range j.Zippers {
		a := z.AddressFor(cluster)
		s.Forwarders = append(s.Forwarders, a)
		s.SetHostKey(a, z.HostKey)
	}
	return s
}

// appnum returns the number of a cluster's program among those of the job, in the order of the
// clusters, as mpirun numbers the programs that it starts. Builds of one program for several MPI
// libraries and architectures have the same number: the name of a program's file, without their
// names, identifies it.
func (j *Job) appnum(cluster string) int {
	var programs []string
	for _, c := range j.Clusters {
		name := programName(c)
		i := slices.Index(programs, name)
		if i < 0 {
			i, programs = len(programs), append(programs, name)
		}
		if c.Name == cluster {
			return i
		}
	}
	return 0
}

// programName returns the name that identifies a cluster's program.
func programName(c Cluster) string {
	if len(c.Program) == 0 {
		return ""
	}
	name := path.Base(c.Program[0])
	for _, library := range []string{"{mpi}", string(OpenMPI), string(MPICH), Arch, "x86_64", "aarch64"} {
		name = strings.ReplaceAll(name, library, "")
	}
	return strings.Trim(name, ".-_")
}

// hops returns the zippers of a job with several hops, or nil if all zippers are on the networks of
// all clusters and no others.
func (j *Job) hops() []jobenv.Zipper {
	some := len(j.Networks) > 0
	var zippers []jobenv.Zipper
	for _, z := range j.Zippers {
		out := jobenv.Zipper{HostKey: z.HostKey}
		for _, c := range j.Clusters {
			a := z.AddressFor(c.Name)
			if some = some || a == "" && len(j.Clusters) > 1; a != "" {
				out.Ports = append(out.Ports, jobenv.Port{Network: c.Name, Address: a})
			}
		}
		for _, n := range j.Networks {
			if z.On(n) {
				out.Ports = append(out.Ports, jobenv.Port{Network: n, Address: z.AddressFor(n)})
			}
		}
		zippers = append(zippers, out)
	}
	if !some {
		return nil
	}
	return zippers
}

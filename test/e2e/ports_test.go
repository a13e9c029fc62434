package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// couple is two jobs of one program that find each other.
type couple struct {
	*Bed
	program string    // program contains "{mpi}" in place of the library.
	secrets [2]string // secrets are files.
	accept  Job
	connect Job
}

func newCouple(b *Bed, source string) *couple {
	c := &couple{Bed: b}
	for i := range c.secrets {
		c.secrets[i] = filepath.Join(b.T.TempDir(), "secret")
		if err := os.WriteFile(c.secrets[i], []byte(SecretOf("one")), 0o600); err != nil {
			b.T.Fatal(err)
		}
	}
	for _, mpi := range []string{OpenMPI, MPICH} {
		c.program = strings.Replace(b.Compile(mpi, source), "/"+mpi+"/", "/{mpi}/", 1)
	}
	return c
}

func (c *couple) start(side int, argv ...string) (*Proc, string) {
	j := [2]Job{c.accept, c.connect}[side]
	args, id := c.runArgs(j)
	args = append(append(args, "--secret-file", c.secrets[side], "--", c.program), argv...)
	return c.Start(nil, j.Env, args...), id
}

// run starts both jobs, which exchange the port by the place, and waits for both: each prints its
// report.
func (c *couple) run(place string, argv ...string) {
	c.T.Helper()
	first, one := c.start(0, append([]string{"accept", place}, argv...)...)
	second, two := c.start(1, append([]string{"connect", place}, argv...)...)
	for _, p := range []*Proc{first, second} {
		if r := p.Wait(); r.Status != 0 || !strings.HasSuffix(strings.TrimSpace(r.Stdout), "ok") {
			c.T.Errorf("%v\nthe others:\n%v\n%v", r, first.Stderr(), second.Stderr())
		}
	}
	c.NothingLeft(one)
	c.NothingLeft(two)
}

func pair(x, y string) []Cluster { return []Cluster{A(2, x), B(1, y)} }

// TestPorts has two jobs that were started independently connect, exchange messages of all sizes
// and collectives, disconnect, and connect again.
func TestPorts(t *testing.T) {
	b := New(t)
	c := newCouple(b, "test/programs/c/ports.c")
	f, g := b.StartForwarder(), b.StartForwarder()
	for _, s := range []struct {
		name            string
		accept, connect Job
		messages        int
		names           bool
	}{
		{"one forwarder, Open MPI", Job{Clusters: pair(OpenMPI, OpenMPI), Flags: []string{"--zipper", f.Addr}},
			Job{Clusters: pair(OpenMPI, OpenMPI), Flags: []string{"--zipper", f.Addr}}, 2000, false},
		{"one forwarder, MPICH", Job{Clusters: pair(MPICH, MPICH), Flags: []string{"--zipper", f.Addr}},
			Job{Clusters: pair(MPICH, MPICH), Flags: []string{"--zipper", f.Addr}}, 2000, false},
		{"one forwarder, mixed, by name", Job{Clusters: pair(OpenMPI, MPICH), Flags: []string{"--zipper", f.Addr}},
			Job{Clusters: []Cluster{A(1, MPICH), C(1, OpenMPI)}, Flags: []string{"--zipper", f.Addr}}, 10000, true},
		{"a forwarder each", Job{Clusters: pair(OpenMPI, MPICH), Flags: []string{"--zipper", f.Addr}},
			Job{Clusters: pair(MPICH, OpenMPI), Flags: []string{"--zipper", g.Addr}}, 10000, false},
		{"the same two forwarders", Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH), C(1, OpenMPI)}, Flags: hopFlags(f, g)},
			Job{Clusters: []Cluster{A(1, MPICH), B(1, OpenMPI), C(1, OpenMPI)}, Flags: hopFlags(f, g)}, 2000, true},
		{"a cluster each", Job{Clusters: []Cluster{A(2, OpenMPI)}, Flags: []string{"--zipper", f.Addr}},
			Job{Clusters: []Cluster{A(2, MPICH)}, Flags: []string{"--zipper", f.Addr}}, 10000, true},
		{"a cluster and a forwarder each", Job{Clusters: []Cluster{A(2, MPICH)}, Flags: []string{"--zipper", f.Addr}},
			Job{Clusters: []Cluster{B(1, OpenMPI)}, Flags: []string{"--zipper", g.Addr}}, 2000, false},
		{"a cluster and a job of two", Job{Clusters: []Cluster{A(2, OpenMPI)}, Flags: []string{"--zipper", f.Addr}},
			Job{Clusters: pair(OpenMPI, MPICH), Flags: []string{"--zipper", f.Addr}}, 2000, true},
	} {
		t.Run(s.name, func(t *testing.T) {
			bed := *b
			bed.T = t
			c := *c
			c.Bed, c.accept, c.connect = &bed, s.accept, s.connect
			place := filepath.Join(t.TempDir(), "port")
			if s.names {
				place = "name:" + JobID(t)
			}
			if !long() {
				s.messages /= 4
			}
			c.run(place, strconv.Itoa(s.messages), "3")
		})
	}
}

// TestPortsWindowsAndFiles checks windows and files over a connection, whose communicator has
// processes of both jobs.
func TestPortsWindowsAndFiles(t *testing.T) {
	b := New(t)
	c := newCouple(b, "test/programs/c/ports_shared.c")
	f, g := b.StartForwarder(), b.StartForwarder()
	for _, s := range []struct {
		name            string
		accept, connect []Cluster
		there           *Forwarder
	}{
		{"Open MPI", pair(OpenMPI, OpenMPI), pair(OpenMPI, OpenMPI), f},
		{"MPICH", pair(MPICH, MPICH), pair(MPICH, MPICH), f},
		{"mixed, a forwarder each", pair(OpenMPI, MPICH), pair(MPICH, OpenMPI), g},
		{"a cluster each", []Cluster{A(2, OpenMPI)}, []Cluster{A(2, MPICH)}, f},
	} {
		t.Run(s.name, func(t *testing.T) {
			bed := *b
			bed.T = t
			c := *c
			c.Bed = &bed
			c.accept = Job{Clusters: s.accept, Flags: []string{"--zipper", f.Addr}}
			c.connect = Job{Clusters: s.connect, Flags: []string{"--zipper", s.there.Addr}}
			c.run(filepath.Join(t.TempDir(), "port"), t.TempDir())
		})
	}
}

// TestPortsOneCluster checks that a job of one cluster that may be connected to others has native
// output in all other respects. With MPICH only those programs run that Debian's 4.0 handles
// correctly natively: it loses puts, and fails in some other programs.
func TestPortsOneCluster(t *testing.T) {
	New(t)
	short := []string{"p2p_modes", "requests", "coll_vector", "comm_make", "intercomm", "intercoll", "group_algebra",
		"attributes",
		"rma_fence", "rma_epochs", "threads_multiple"}
	broken := []string{"p2p_errors", "mpi4", "isendrecv", "topology"}
	for _, p := range programs {
		if len(p.splits) == 0 || !long() && !slices.Contains(short, p.title()) {
			continue
		}
		splits := []split{{OpenMPI, []Cluster{A(3, OpenMPI)}}, {MPICH, []Cluster{A(2, MPICH)}}}
		if slices.Contains(broken, p.title()) || strings.Contains(p.title(), "rma") || p.title() == "window" {
			splits = splits[:1]
		}
		overSplits(t, p.title(), asked(splits), func(b *Bed, s split) {
			// No forwarder listens at the address, because only a connection needs one
			j := Job{Clusters: s.clusters, Flags: []string{"--zipper", "127.0.0.1:9"}}
			if b.matchesPolled(p, s, j) {
				return
			}
			b.matchesNative(j, append([]string{compileFor(b, s.clusters, p.file, p.flags...)}, p.args...)...)
		})
	}
}

// TestPortsWithinOneJob connects the halves of one job: natively if both are in one cluster.
func TestPortsWithinOneJob(t *testing.T) {
	b := New(t)
	c := newCouple(b, "test/programs/c/ports.c")
	for _, clusters := range [][]Cluster{
		{A(2, OpenMPI), B(2, OpenMPI)}, {A(2, MPICH), B(1, MPICH)}, {A(1, OpenMPI), B(2, MPICH)},
	} {
		r := b.OK(b.Zipped(Job{Clusters: clusters}, c.program, "both", "-", "500", "3"))
		if !strings.HasSuffix(strings.TrimSpace(r.Stdout), "ok") {
			t.Errorf("%v", r)
		}
	}
}

// TestPortsSecret checks that a job with another secret cannot connect, and is told why.
func TestPortsSecret(t *testing.T) {
	b := New(t)
	c := newCouple(b, "test/programs/c/ports.c")
	if err := os.WriteFile(c.secrets[1], []byte(SecretOf("other")), 0o600); err != nil {
		t.Fatal(err)
	}
	f := b.StartForwarder()
	c.accept = Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}, Flags: []string{"--zipper", f.Addr}}
	c.connect = c.accept
	place := filepath.Join(t.TempDir(), "port")
	first, one := c.start(0, "accept", place, "10", "1")
	second, two := c.start(1, "connect", place, "10", "1")
	if r := second.Wait(); r.Status == 0 || !strings.Contains(r.Stderr, "has another secret") {
		t.Errorf("want a refusal that names the secret:\n%v", r)
	}
	c.NothingLeft(two)
	first.Signal(syscall.SIGTERM)
	first.Wait()
	c.NothingLeft(one)
}

// TestPortsLost checks that a lost job is an error at the other job, whose handler may go on; the
// other job is not lost.
func TestPortsLost(t *testing.T) {
	b := New(t)
	c := newCouple(b, "test/programs/c/ports_lost.c")
	f, g := b.StartForwarder(), b.StartForwarder()
	for name, addr := range map[string]string{"one forwarder": f.Addr, "a forwarder each": g.Addr} {
		t.Run(name, func(t *testing.T) {
			bed := *b
			bed.T = t
			c := *c
			c.Bed = &bed
			c.accept = Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}, Flags: []string{"--zipper", f.Addr}}
			c.connect = Job{Clusters: []Cluster{A(1, MPICH), B(1, OpenMPI)}, Flags: []string{"--zipper", addr}}
			place := filepath.Join(t.TempDir(), "port")
			first, one := c.start(0, "accept", place)
			second, two := c.start(1, "connect", place)
			bed.WaitFor(time.Minute, "both to be connected", func() bool { return strings.Contains(second.Stdout(), "connected") })
			pid, err := Victim(two, strings.ReplaceAll(c.program, "{mpi}", OpenMPI))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if r := second.Wait(); r.Status == 0 {
				t.Errorf("a job whose process was killed ends well:\n%v", r)
			}
			c.NothingLeft(two)
			if r := first.Wait(); r.Status != 0 || !strings.HasSuffix(strings.TrimSpace(r.Stdout), "ok") ||
				!strings.Contains(r.Stdout, "lost: ") {
				t.Errorf("%v", r)
			}
			c.NothingLeft(one)
		})
	}
}

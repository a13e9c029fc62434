package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNetworks has clusters that share no forwarder, over networks without ranks: the output is the
// native one with point to point, collectives and communicators at random, and every forwarder sees
// the job end well.
func TestNetworks(t *testing.T) {
	two := []Cluster{A(2, OpenMPI), B(2, MPICH)}
	three := []Cluster{A(1, OpenMPI), B(2, MPICH), C(1, OpenMPI)}
	for _, tc := range []struct {
		name     string
		clusters []Cluster
		networks []string
		// zippers has Z1, Z2 … in place of the forwarders' addresses.
		zippers []string
	}{
		{"border nodes", two, []string{"wan"}, []string{"a@Z1+wan@Z1", "b@Z2+wan@Z2"}},
		{"only a dials", two, []string{"wan"}, []string{"b@Z1+wan@Z1", "a@Z2+wan"}},
		{"hub that both dial", two, []string{"up", "down"}, []string{"up@Z1+down@Z1", "a@Z2+up", "b@Z3+down"}},
		{"three in a row", three, []string{"wan1", "wan2"},
			[]string{"a@Z1+wan1", "wan1@Z2+b@Z2+wan2@Z2", "wan2+c@Z3"}},
		{"star", three, []string{"wan1", "wan2", "wan3"},
			[]string{"wan1@Z1+wan2@Z1+wan3@Z1", "a@Z2+wan1", "b@Z3+wan2", "c@Z4+wan3"}},
		{"two side by side", two, []string{"wan"},
			[]string{"a@Z1+wan@Z1", "b@Z2+wan@Z2", "a@Z3+wan@Z3", "b@Z4+wan@Z4"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := New(t)
			var flags []string
			for _, n := range tc.networks {
				flags = append(flags, "--network", n)
			}
			forwarders := make([]*Forwarder, len(tc.zippers))
			for i, z := range tc.zippers {
				forwarders[i] = b.StartForwarder()
				for k := range i + 1 {
					z = strings.ReplaceAll(z, "Z"+string(rune('1'+k)), forwarders[k].Addr)
				}
				flags = append(flags, "--zipper", z)
			}
			const source = "test/programs/c/random.c"
			prog := b.Compile(OpenMPI, source)
			b.Compile(MPICH, source)
			native := b.OK(b.Native(OpenMPI, 4, prog, "6", "200"))
			path := strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1)
			b.Same(native, b.OK(b.Zipped(Job{Clusters: tc.clusters, Flags: flags}, path, "6", "200")), nil)
			for i, f := range forwarders {
				b.WaitFor(10*time.Second, "forwarder "+tc.zippers[i]+" to see the job end",
					func() bool { return strings.Contains(f.Stderr(), `job ended`) })
				if strings.Contains(f.Stderr(), `"ok": false`) {
					t.Errorf("forwarder %s:\n%s", tc.zippers[i], f.Stderr())
				}
			}
		})
	}
}

// TestNetworksRefused checks that links which cannot be opened are reported before anything starts,
// with the remedy.
func TestNetworksRefused(t *testing.T) {
	b := New(t)
	for _, tc := range []struct{ zippers, want string }{
		{"a@h+wan b@g+wan", "neither listens there: give one of them an address, as in wan@HOST[:PORT]"},
		{"a@h b@g+wan@g", "fewer than two networks"},
		{"h=a,b", "no zipper leads from cluster a to network wan"},
	} {
		args := []string{b.Zipper, "run", "-c", "a=1", "-c", "b=1", "--network", "wan"}
		for _, z := range strings.Fields(tc.zippers) {
			args = append(args, "--zipper", z)
		}
		r := b.Run(nil, nil, append(args, "--", "/bin/true")...)
		if r.Status == 0 || !strings.Contains(r.Stderr, tc.want) {
			t.Errorf("%s: want %q\n%v", tc.zippers, tc.want, r)
		}
	}
}

// TestNetworksDoctor checks that zipper doctor lets a job gather over all forwarders, and reports
// which link between them cannot be made and what to do; zipper run reports the same.
func TestNetworksDoctor(t *testing.T) {
	b := New(t)
	y, z := b.StartForwarder(), b.StartForwarder()
	prog := b.Compile(OpenMPI, "test/programs/c/p2p_modes.c")
	const closed = "127.0.0.1:1" // no process listens on port 1
	for _, tc := range []struct {
		name  string
		flags []string
		want  string // want is in the error; empty: there is none.
	}{
		{"good", []string{"a@" + y.Addr + "+wan", "b@" + z.Addr + "+wan@" + z.Addr}, ""},
		{"closed port", []string{"a@" + y.Addr + "+wan", "b@" + z.Addr + "+wan@" + closed},
			"cannot reach the forwarder " + closed + ": "},
		{"wrong address", []string{"a@" + y.Addr + "+wan", "b@" + z.Addr + "+wan@" + y.Addr},
			"no link between these forwarders"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := *b
			b.T = t
			job := []string{"-c", "a=1", "-c", "b=1", "--network", "wan"}
			for _, f := range tc.flags {
				job = append(job, "--zipper", f)
			}
			r := b.Run(nil, nil, append([]string{b.Zipper, "doctor"}, job...)...)
			if tc.want == "" {
				b.OK(r)
				if !strings.Contains(r.Stdout, "a job of all clusters gathers over them") {
					t.Errorf("no word of the job that gathered:\n%v", r)
				}
				return
			}
			if r.Status != 1 || !strings.Contains(r.Stdout, tc.want) || !strings.Contains(r.Stdout, "check addresses") {
				t.Errorf("doctor: want %q\n%v", tc.want, r)
			}
			r = b.Run(nil, nil, append(append([]string{b.Zipper, "run", "--timeout", "5s"}, job...), "--", prog)...)
			if r.Status == 0 || !strings.Contains(r.Stderr, tc.want) {
				t.Errorf("run: want %q\n%v", tc.want, r)
			}
		})
	}
	b.WaitFor(10*time.Second, "the forwarder to see the doctor's job end well",
		func() bool { return strings.Contains(z.Stderr(), `job ended`) })
}

// TestNetworksSideBySideKilled has two parallel trunks between two sites. A border node of one
// trunk is killed in the middle of transfers, and the job goes on over the other, with every byte
// correct. After its restart the border node is used again: then one of the other trunk is killed.
func TestNetworksSideBySideKilled(t *testing.T) {
	b := New(t)
	prog := b.Compile(OpenMPI, "test/programs/c/stream.c")
	stop := filepath.Join(t.TempDir(), "stop")
	var flags []string
	var forwarders []*Forwarder
	for i := range 4 {
		f := b.StartForwarder()
		forwarders = append(forwarders, f)
		z := []string{"a@", "b@"}[i%2] + f.Addr + "+wan@" + f.Addr
		flags = append(flags, "--zipper", z)
	}
	args, id := b.runArgs(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)},
		Flags: append(flags, "--network", "wan")})
	p := b.Start(nil, nil, append(args, "--", prog, stop)...)
	more := func(what string) {
		from := strings.Count(p.Stdout(), "round ")
		b.WaitFor(time.Minute, what, func() bool { return strings.Count(p.Stdout(), "round ") >= from+3 })
	}
	more("the stream to run")
	b.WaitFor(20*time.Second, "both rows to run",
		func() bool { return strings.Contains(forwarders[3].Stderr(), "job runs") })
	forwarders[0].Signal(syscall.SIGKILL)
	forwarders[0].Wait()
	more("the stream to go on over the other trunk")
	forwarders[0] = b.StartForwarderAt(forwarders[0].Addr)
	b.WaitFor(time.Minute, "the row to run again",
		func() bool { return strings.Contains(forwarders[0].Stderr(), "job runs") })
	forwarders[2].Signal(syscall.SIGKILL)
	forwarders[2].Wait()
	more("the stream to go on over the trunk that is back")
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.OK(p.Wait())
	b.NothingLeft(id)
}

// TestNetworksRestarted has two sites with one border node each. One is killed in the middle of
// transfers and restarted, then the other. Data in flight are sent again; every byte is correct.
func TestNetworksRestarted(t *testing.T) {
	b := New(t)
	prog := b.Compile(OpenMPI, "test/programs/c/stream.c")
	stop := filepath.Join(t.TempDir(), "stop")
	nodes := []*Forwarder{b.StartForwarder(), b.StartForwarder()}
	args, id := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, OpenMPI)}, Flags: []string{"--network", "wan",
		"--zipper", "a@" + nodes[0].Addr + "+wan@" + nodes[0].Addr,
		"--zipper", "b@" + nodes[1].Addr + "+wan@" + nodes[1].Addr}})
	p := b.Start(nil, nil, append(args, "--", prog, stop)...)
	more := func(what string) {
		from := strings.Count(p.Stdout(), "round ")
		b.WaitFor(time.Minute, what, func() bool { return strings.Count(p.Stdout(), "round ") >= from+3 })
	}
	more("the stream to run")
	for i, f := range nodes {
		f.Signal(syscall.SIGKILL)
		f.Wait()
		nodes[i] = b.StartForwarderAt(f.Addr)
		more("the stream to go on over the one that is back")
	}
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.OK(p.Wait())
	b.NothingLeft(id)
}

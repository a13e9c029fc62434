package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestLabArrangements runs jobs of sites with one border node each, in every arrangement of long
// links of 20 ms. Sites accept connections only at port 7475 of gB and of gB2.
//
//	a - gA  ==wan==  gB  ==wan2==  gC - c        a - gA2 ==wan4== gB2 - b
//	                 | \\
//	                 b  wan3  gD - d
func TestLabArrangements(t *testing.T) {
	l := twoSites(t, "--delay", "20ms", "--open", "gB:7475", "--open", "gB2:7475", "--link", "gA=gB", "--link", "gC=gB",
		"--link", "gD=gB", "--link", "gA2=gB2")
	for _, node := range []string{"gA", "gA2", "gB", "gB2", "gC", "gD"} {
		l.forwarder(node)
	}
	b := l.b
	prog := b.Compile(OpenMPI, "test/programs/c/random.c")
	b.Compile(MPICH, "test/programs/c/random.c")
	path := strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1)
	native := b.OK(b.Native(OpenMPI, 4, prog, "3", "60"))
	const (
		a = `{addresses: {a: "10.81.1.1:7475"}, dial: [up]}`
		c = `{addresses: {c: "10.81.3.1:7475"}, dial: [down]}`
		d = `{addresses: {d: "10.81.9.1:7475"}, dial: [side]}`

		hub = `{addresses: {up: "10.81.4.2:7475", down: "10.81.5.2:7475"}}`
	)
	ends := []string{"{name: a, login: a1, ranks: 2, mpi: openmpi}", "{name: c, login: c1, ranks: 2, mpi: mpich}"}
	three := func(third string) []string {
		return []string{"{name: a, login: a1, ranks: 1, mpi: openmpi}", "{name: c, login: c1, ranks: 2, mpi: mpich}",
			"{name: " + third + ", login: " + third + "1, ranks: 1, mpi: openmpi}"}
	}
	run := func(t *testing.T, networks string, clusters, zippers []string, links ...string) {
		t.Parallel()
		l := l.in(t)
		before := map[string]uint64{}
		for _, n := range links {
			before[n] = l.line(n)[0].Packets
		}
		r := l.b.OK(l.b.Run(nil, l.env, b.Zipper, "run", "--file", l.arranged(networks, clusters, zippers...), "--", path,
			"3", "60"))
		l.b.Same(native, r, nil)
		for _, n := range links {
			if now := l.line(n)[0].Packets; now < before[n]+100 {
				t.Errorf("link %s carried %d packets", n, now-before[n])
			}
		}
	}
	cannot := func(t *testing.T, hub, c string, why ...string) {
		t.Parallel()
		l := l.in(t)
		l.cannot(l.arranged("up, down", ends, a, hub, c), path, why...)
	}
	// two jobs at a time, since some of them mostly wait
	t.Run("jobs", func(t *testing.T) {
		t.Run("a hub that both dial", func(t *testing.T) {
			run(t, "up, down", ends, []string{a, hub, c}, "1", "2")
		})
		t.Run("closed port of the hub", func(t *testing.T) {
			cannot(t, strings.Replace(hub, "5.2:7475", "5.2:7499", 1), c, "cannot reach the forwarder 10.81.5.2:7499",
				"no link from the forwarder")
		})
		t.Run("three in a row", func(t *testing.T) {
			b := `{addresses: {b: "10.81.2.1:7475", up: "10.81.4.2:7475", down: "10.81.5.2:7475"}}`
			run(t, "up, down", three("b"), []string{a, b, c}, "1", "2")
		})
		t.Run("wrong address of the hub", func(t *testing.T) {
			cannot(t, strings.Replace(hub, "5.2:7475", "5.77:7475", 1), c, "cannot reach the forwarder 10.81.5.77:7475",
				"no link from the forwarder")
		})
		t.Run("a star", func(t *testing.T) {
			hub := strings.Replace(hub, "}}", `, side: "10.81.6.2:7475"}}`, 1)
			run(t, "up, down, side", three("d"), []string{a, hub, c, d}, "1", "2", "3")
		})
		t.Run("the hub dials", func(t *testing.T) {
			cannot(t, `{addresses: {up: "10.81.4.2:7475"}, dial: [down]}`,
				`{addresses: {c: "10.81.3.1:7475", down: "10.81.5.1:7475"}}`, "one that is on no cluster's network cannot open it")
		})
	})
	t.Run("losses", func(t *testing.T) {
		t.Run("two trunks side by side", func(t *testing.T) {
			t.Parallel()
			l.in(t).lostRow()
		})
		t.Run("MTU black hole behind the hub", func(t *testing.T) {
			l.lab("line", "2", "set", "blackhole=1400")
			cannot(t, hub, c, "MTU black hole")
		})
	})
}

// lostRow checks that a job over two parallel trunks between border nodes of their own goes on over
// one trunk when the other is lost for good, and that every byte is correct.
func (l *lab) lostRow() {
	b := l.b
	job := l.arranged("wan", []string{"{name: a, login: a1, ranks: 2, mpi: openmpi}",
		"{name: b, login: b1, ranks: 2, mpi: mpich}"},
		`{addresses: {a: "10.81.1.1:7475"}, dial: [wan]}`, `{addresses: {b: "10.81.2.1:7475", wan: "10.81.4.2:7475"}}`,
		`{addresses: {a: "10.81.1.2:7475"}, dial: [wan]}`, `{addresses: {b: "10.81.2.2:7475", wan: "10.81.7.2:7475"}}`)
	prog := b.Compile(OpenMPI, "test/programs/c/stream.c")
	b.Compile(MPICH, "test/programs/c/stream.c")
	s := l.streams(strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1), job)
	s.waitProgress("the stream to run")
	for _, n := range []string{"1", "4"} {
		from := l.line(n)[0].Packets
		b.WaitFor(time.Minute, "both trunks to carry it", func() bool { return l.line(n)[0].Packets > from+1000 })
	}
	l.lab("line", "4", "cut", "10m")
	shown := regexp.MustCompile(`to the forwarder 10\.81\.7\.2:7475: cut`)
	b.WaitFor(time.Minute, "the trunk to be given up", func() bool {
		return shown.MatchString(b.Run(nil, l.env, "scripts/lab", "on", "gA2", b.Zipper, "status").Stdout)
	})
	s.waitProgress("the stream to go on over the other trunk")
	s.end()
}

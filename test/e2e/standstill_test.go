package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

const (
	standstillPatience = "3s"
	standstillWarning  = "all processes have waited for " + standstillPatience
)

// TestStandstillIsReported has ranks call different functions: when all of them wait, the user gets
// a warning that names the functions.
func TestStandstillIsReported(t *testing.T) {
	const both = "waits in MPI_Barrier (1 of 2), MPI_Recv (1 of 2)"
	for _, run := range []struct {
		split split
		want  string
	}{
		{mixedFour, "cluster a waits in MPI_Recv; cluster b waits in MPI_Barrier"},
		{twoTwo, "cluster a " + both + "; cluster b " + both},
		{split{"2+2 MPICH", []Cluster{A(2, MPICH), B(2, MPICH)}}, "cluster a " + both + "; cluster b " + both},
	} {
		overSplits(t, "", []split{run.split}, func(b *Bed, s split) {
			path := compileFor(b, s.clusters, "c/standstill.c")
			args, id := b.runArgs(Job{Clusters: s.clusters, Flags: []string{"--patience", standstillPatience}})
			p := b.Start(nil, nil, append(append(args, "--"), path)...)
			b.WaitFor(time.Minute, "the warning", func() bool { return strings.Contains(p.Stderr(), standstillWarning) })
			p.Signal(syscall.SIGINT)
			if r := p.Wait(); !strings.Contains(r.Stderr, run.want) {
				b.T.Errorf("want %q:\n%v", run.want, r)
			}
			b.NothingLeft(id)
		})
	}
}

// noWarning checks that a run has ended well, without a warning about a standstill.
func (b *Bed) noWarning(r Result) {
	b.T.Helper()
	if b.OK(r); strings.Contains(r.Stderr, standstillWarning) {
		b.T.Errorf("a warning of a standstill:\n%v", r)
	}
}

// TestSlowMessagesAreNoStandstill keeps all ranks in one wait for longer than the patience, while
// messages arrive one by one.
func TestSlowMessagesAreNoStandstill(t *testing.T) {
	overSplits(t, "", []split{oneOne, {"1+1 MPICH", []Cluster{A(1, MPICH), B(1, MPICH)}}}, func(b *Bed, s split) {
		slow := tamper(b.T, b.StartForwarder().Addr, func(toRank bool, h wire.Header, frame []byte) [][]byte {
			if toRank && h.Type == wire.TypeEager {
				time.Sleep(500 * time.Millisecond) // the slow path
			}
			return [][]byte{frame}
		})
		path := compileFor(b, s.clusters, "c/longwaits.c", "-pthread")
		b.noWarning(b.Zipped(Job{Clusters: s.clusters, Flags: []string{"--zipper", slow.Addr, "--patience",
			standstillPatience}}, path, "messages"))
	})
}

// TestWaitingThreadIsNoStandstill lets one thread of each rank wait for as long as another one
// computes.
func TestWaitingThreadIsNoStandstill(t *testing.T) {
	overSplits(t, "", []split{twoTwo, mixedFour}, func(b *Bed, s split) {
		path := compileFor(b, s.clusters, "c/longwaits.c", "-pthread")
		b.noWarning(b.Zipped(Job{Clusters: s.clusters, Flags: []string{"--patience", standstillPatience}}, path,
			"threads"))
	})
}

// TestWaitForChildrenIsNoStandstill lets all ranks wait until a process that one of them has
// spawned has finished. Debian's MPICH 4.0 cannot spawn.
func TestWaitForChildrenIsNoStandstill(t *testing.T) {
	overSplits(t, "", []split{twoTwo}, func(b *Bed, s split) {
		path := compileFor(b, s.clusters, "c/longwaits.c", "-pthread")
		b.noWarning(b.retryIfHung(func() Result {
			return b.zippedBy([]string{"timeout", "-k", "20", nativeLimit}, Job{Clusters: s.clusters,
				Flags: []string{"--patience", standstillPatience}}, path, "spawn")
		}))
	})
}

// TestWaitForOtherJobIsNoStandstill lets all ranks of a job wait for a job that is connected to it.
func TestWaitForOtherJobIsNoStandstill(t *testing.T) {
	b := New(t)
	c := newCouple(b, "test/programs/c/longwaits.c")
	flags := []string{"--zipper", b.StartForwarder().Addr, "--patience", standstillPatience}
	c.accept = Job{Clusters: pair(OpenMPI, MPICH), Flags: flags}
	c.connect = Job{Clusters: pair(MPICH, OpenMPI), Flags: flags}
	place := filepath.Join(t.TempDir(), "port")
	accepting, one := c.start(0, "accept", place)
	connecting, two := c.start(1, "connect", place)
	b.noWarning(accepting.Wait())
	b.noWarning(connecting.Wait())
	b.NothingLeft(one)
	b.NothingLeft(two)
}

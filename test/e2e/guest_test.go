package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
)

// guests are programs in whose process a library must be a good guest (docs/design/guest.md). They
// run over each library and over both.
var guests = []program{
	{file: "c/coroutines.c"},
	{name: "traps_before", file: "c/traps.c", args: []string{"before"}},
	{name: "traps_after", file: "c/traps.c", args: []string{"after"}},
	{file: "c/lives.c", flags: []string{"-pthread"}},
	{file: "c/spawning.c", flags: []string{"-pthread"}},
	{name: "exits_finalize", file: "c/exits.c", args: []string{"finalize"}},
	{name: "exits_communicate", file: "c/exits.c", args: []string{"communicate"}},
	{name: "exits_early", file: "c/exits.c", args: []string{"early"}},
	{name: "exits_after", file: "c/exits.c", args: []string{"after"}},
	{file: "c/clashes.c", flags: []string{"-rdynamic"}},
	{file: "c/signal_thread.c", args: signals(), flags: []string{"-pthread"}},
}

// signals returns the numbers of the signals that a program waits for: SIGTERM, SIGUSR1, SIGALRM,
// SIGCHLD, SIGPROF, and the first and the last real-time signal. An emulator keeps the last one for
// itself, so the program would wait for ever there.
func signals() []string {
	s := []string{"15", "10", "14", "17", "27", "34"}
	if optional.Emulated() {
		return s
	}
	return append(s, "64")
}

// TestGuestPrograms compares the programs of guests with their native runs.
func TestGuestPrograms(t *testing.T) {
	New(t)
	for _, p := range guests {
		t.Run(p.title(), func(t *testing.T) {
			overSplits(t, "", asked(byLength([]split{mpichPair, mixedPair}, []split{oneOne, mpichPair, mixedPair})), func(b *Bed, s split) {
				b.matchesNative(Job{Clusters: s.clusters}, append([]string{compileFor(b, s.clusters, p.file, p.flags...)},
					p.args...)...)
			})
		})
	}
}

// TestPluginMayBeClosed lets a program close the plug-in that loaded MPI while the engine's threads
// run. MPI is started by a call of the plug-in's, or by its constructor.
func TestPluginMayBeClosed(t *testing.T) {
	for _, begins := range []string{"CALL", "CONSTRUCTOR"} {
		overSplits(t, begins, []split{oneOne, mpichPair, mixedPair}, func(b *Bed, s split) {
			host, plugin := b.compilePlain("c/plugin_host.c"), compileFor(b, s.clusters, "c/plugin.c", "-shared", "-fPIC",
				"-D"+begins)
			native := b.OK(b.Native(OpenMPI, s.ranks(), host, strings.ReplaceAll(plugin, "{mpi}", OpenMPI)))
			b.Same(native, b.OK(b.Zipped(Job{Clusters: s.clusters}, host, plugin)), nil)
		})
	}
}

// TestRelativeLibraryPath starts a linked program whose libraries are found by a relative path, and
// which changes its working directory before MPI_Init.
func TestRelativeLibraryPath(t *testing.T) {
	overSplits(t, "", []split{oneOne, mpichPair, mixedPair}, func(b *Bed, s split) {
		var path string
		for _, c := range s.clusters {
			path = strings.ReplaceAll(b.Compile(c.MPI, "test/programs/c/elsewhere.c", "-L"+filepath.Join(b.Root, "lib"),
				"-Wl,--no-as-needed", "-lmmpi-"+c.MPI), c.MPI, "{mpi}")
		}
		b.OK(b.Zipped(Job{Clusters: s.clusters, Env: []string{"LD_LIBRARY_PATH=lib"}}, path))
	})
}

// TestUserMayChange lets a program of root become another user in the middle of a job. Natively
// Open MPI warns about its segments, which that user may not remove.
func TestUserMayChange(t *testing.T) {
	optional.Processor(t, "the signals by which a C library changes the user of all threads")
	overSplits(t, "", []split{oneOne, mpichPair, mixedPair}, func(b *Bed, s split) {
		b.OK(b.Zipped(Job{Clusters: s.clusters}, compileFor(b, s.clusters, "c/identity.c")))
	})
}

// TestExitOfThread lets a thread exit with a status while the first thread waits in MPI.
func TestExitOfThread(t *testing.T) {
	overSplits(t, "", []split{oneOne, mpichPair, mixedPair}, func(b *Bed, s split) {
		b.Fails(b.Zipped(Job{Clusters: s.clusters}, compileFor(b, s.clusters, "c/exits.c", "-pthread"), "thread"), 3)
	})
}

// TestProgramWithGoRuntime lets a program load a library with a Go runtime of its own.
func TestProgramWithGoRuntime(t *testing.T) {
	library := filepath.Join(t.TempDir(), "guest.so")
	overSplits(t, "", []split{oneOne, mpichPair, mixedPair}, func(b *Bed, s split) {
		if _, err := os.Stat(library); err != nil {
			b.OK(b.Run(nil, nil, "go", "build", "-buildmode=c-shared", "-o", library, "./test/programs/guest"))
		}
		for _, when := range []string{"before", "after"} {
			b.matchesNative(Job{Clusters: s.clusters}, compileFor(b, s.clusters, "c/runtimes.c"), library, when)
		}
	})
}

// TestFirstThreadMayEnd ends the first thread of a process. With UCX_TLS=self,posix,sysv,tcp, which
// zipper run sets for MPICH, UCX 1.13 then aborts in MPI_Finalize, natively too.
func TestFirstThreadMayEnd(t *testing.T) {
	overSplits(t, "", []split{oneOne}, func(b *Bed, s split) {
		b.matchesNative(Job{Clusters: s.clusters}, compileFor(b, s.clusters, "c/lives.c", "-pthread"), "first")
	})
}

// TestDataLimit checks that the error names a limit of data that leaves too little, and that a
// limit which leaves enough has no effect.
func TestDataLimit(t *testing.T) {
	optional.Processor(t, "limits of data")
	overSplits(t, "", []split{oneOne, mpichPair, mixedPair}, func(b *Bed, s split) {
		limited := func(kib string) Result {
			return b.Zipped(Job{Clusters: s.clusters}, "/bin/sh", "-c", `ulimit -d "$0"; exec "$@"`, kib,
				compileFor(b, s.clusters, "c/elsewhere.c"))
		}
		r := limited("100000")
		b.Fails(r, 1, "ulimit -d", "raise it")
		if strings.Contains(r.Stderr, "goroutine") || strings.Contains(r.Stderr, "runtime stack") {
			t.Errorf("Go's own trace is shown:\n%v", r)
		}
		b.OK(limited("400000"))
	})
}

// TestInheritedSignals checks that a program ignores and blocks the signals that the launcher was
// started to ignore and to block, as far as the native launcher passes that on.
func TestInheritedSignals(t *testing.T) {
	words := []string{"env", "--ignore-signal=IO,WINCH,XFSZ", "--block-signal=VTALRM,IO"}
	for _, mpi := range []string{OpenMPI, MPICH} {
		t.Run(mpi, func(t *testing.T) {
			b := New(t)
			path := b.Compile(mpi, "test/programs/c/dispositions.c")
			native := b.OK(b.nativeBy(words, mpi, 2, path))
			b.Same(native, b.OK(b.zippedBy(words, Job{Clusters: []Cluster{A(1, mpi), B(1, mpi)}}, path)), nil)
		})
	}
}

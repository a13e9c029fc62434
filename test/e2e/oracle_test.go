package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/leidenzipper/zipper/internal/optional"
)

// natives caches the native output of programs, which is the same for every split of as many ranks.
type natives struct {
	mu sync.Mutex
	of map[string]Result
}

var oracle natives

func (n *natives) run(b *Bed, ranks int, argv ...string) Result {
	b.T.Helper()
	key := fmt.Sprint(ranks, argv)
	n.mu.Lock()
	r, ok := n.of[key]
	n.mu.Unlock()
	if ok {
		return r
	}
	r = b.OK(b.Native(OpenMPI, ranks, argv...))
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[string]Result{}
	}
	n.of[key] = r
	return r
}

// nativeLimit is the longest time in seconds of a native run that is not known to end.
const nativeLimit = "40"

// witnesses are MPI libraries on each of which a program is run alone at most once.
type witnesses struct {
	mpis    []string
	ask     func(mpi string) Result
	results map[string]Result
}

func (w *witnesses) of(mpi string) Result {
	r, ok := w.results[mpi]
	if !ok {
		r = w.ask(mpi)
		if w.results == nil {
			w.results = map[string]Result{}
		}
		w.results[mpi] = r
	}
	return r
}

// broken reports whether a native run has failed. MPICH 4.2's launcher sometimes reports success
// for processes that have called MPI_Abort.
func broken(r Result) bool {
	return r.Status != 0 || strings.Contains("\n"+r.Stderr, "\nAbort(")
}

// faults describes the libraries on which the program fails, or is empty if there are none.
func (w *witnesses) faults() string {
	var out []string
	for _, mpi := range w.mpis {
		r := w.of(mpi)
		if !broken(r) {
			continue
		}
		text := strings.TrimSpace(r.Stderr + r.Stdout)
		if text == "" {
			text = "(no output)"
		}
		const most = 600
		if len(text) > most {
			text = text[:most] + " …"
		}
		out = append(out, fmt.Sprintf("natively on %s (%s) it ends with status %d:\n%s", mpi, version(mpi), r.Status,
			text))
	}
	return strings.Join(out, "\n")
}

// compare runs a program zipped, which must print its output on one library alone. If it fails or
// does not end, it must do so on one of the libraries natively: the test is then skipped, with the
// failure.
func (b *Bed) compare(w *witnesses, j Job, argv ...string) {
	b.T.Helper()
	zipped := b.zippedBy([]string{"timeout", fmt.Sprint((b.Limit * 3 / 4).Seconds())}, j, argv...)
	if zipped.Status != 0 {
		if faults := w.faults(); faults != "" {
			b.T.Skipf("fails, as it does without zipper; %s", faults)
		}
	}
	b.OK(zipped)
	differ := ""
	for _, mpi := range w.mpis {
		if broken(w.of(mpi)) {
			continue
		}
		want, got := lines(w.of(mpi).Stdout, nil), lines(zipped.Stdout, nil)
		if differ = firstDifference(want, got); differ == "none" {
			return
		}
	}
	if differ == "" {
		b.T.Logf("works zipped; %s", w.faults())
		return
	}
	b.T.Errorf("zipped output differs from native output:\n%s\n%v", differ, zipped)
}

// matchesNative compares a zipped program, with "{mpi}" in its path, with itself on Open MPI alone.
// If the native libraries have faults compare decides, with the libraries of the job.
func (b *Bed) matchesNative(j Job, argv ...string) {
	b.T.Helper()
	if nativeIsReliable() {
		native := oracle.run(b, split{clusters: j.Clusters}.ranks(), forMPI(OpenMPI, argv)...)
		b.Same(native, b.OK(b.Zipped(j, argv...)), nil)
		return
	}
	b.compare(b.askLibraries(j, argv...), j, argv...)
}

// nativeIsReliable reports whether all programs work natively, which they do with the libraries of
// Debian 12, but not with all others, among which are release candidates, nor under user emulation,
// which keeps some signals for itself.
func nativeIsReliable() bool {
	return !optional.Emulated() && strings.HasPrefix(version(OpenMPI), "4.1.") &&
		strings.HasPrefix(version(MPICH), "4.0.")
}

// okOrFailsNatively fails the test if a job has failed, or skips it if the program, with "{mpi}" in
// its path, fails on one of the job's libraries alone too.
func (b *Bed) okOrFailsNatively(r Result, j Job, argv ...string) {
	b.T.Helper()
	if r.Status != 0 && !nativeIsReliable() {
		if faults := b.askLibraries(j, argv...).faults(); faults != "" {
			b.T.Skipf("fails, as it does without zipper; %s", faults)
		}
	}
	b.OK(r)
}

// askLibraries returns witnesses of a program, with "{mpi}" in its path, on each of the job's
// libraries alone, with the job's environment.
func (b *Bed) askLibraries(j Job, argv ...string) *witnesses {
	ranks := split{clusters: j.Clusters}.ranks()
	w := &witnesses{ask: func(mpi string) Result {
		// The launcher is limited too, because spawned processes have no limit
		return b.nativeBy([]string{"timeout", "-k", "10", "60"}, mpi, ranks,
			slices.Concat([]string{"timeout", nativeLimit, "env"}, j.Env, forMPI(mpi, argv))...)
	}}
	for _, mpi := range []string{OpenMPI, MPICH} {
		if slices.ContainsFunc(j.Clusters, func(c Cluster) bool { return c.MPI == mpi }) {
			w.mpis = append(w.mpis, mpi)
		}
	}
	return w
}

func forMPI(mpi string, argv []string) []string {
	return append([]string{strings.ReplaceAll(argv[0], "{mpi}", mpi)}, argv[1:]...)
}

// compileFor builds a program for every MPI library of the split and returns its path with "{mpi}"
// in it.
func compileFor(b *Bed, clusters []Cluster, file string, flags ...string) string {
	b.T.Helper()
	var path string
	mpis := map[string]bool{OpenMPI: true}
	for _, c := range clusters {
		mpis[c.MPI] = true
	}
	for _, mpi := range slices.Sorted(maps.Keys(mpis)) {
		path = strings.Replace(b.Compile(mpi, filepath.Join("test/programs", file), flags...), "/"+mpi+"/", "/{mpi}/",
			1)
	}
	return path
}

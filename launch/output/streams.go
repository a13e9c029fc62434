// Package output brings what many processes print through their native launchers to one place: by
// whole lines, each with the rank it is from if that is wanted, and what all say at once only once.
package output

import "io"

// Launcher is how a cluster's native launcher hands on what its processes print.
type Launcher struct {
	Cluster string
	World   []int // by native rank: the rank in MPI_COMM_WORLD
	Tag     bool  // it puts the native rank before what it hands on; we put that of World instead
	MPICH   bool  // it is MPICH's, else Open MPI's
	PRRTE   bool  // it is Open MPI's since version 5
	Srun    bool  // it is Slurm's, for either library; without Tag
}

// Streams are a launcher's two streams on their way to those who read them.
type Streams struct {
	Stdout, Stderr io.WriteCloser // for the launcher; Close closes them

	launcher Launcher
	stderr   io.Writer
	merged   *Merger // to the reader of standard output
	banner   hydra
	tasks    srun
	said     dedup
}

// Open connects a launcher's streams with their readers.
func Open(l Launcher, stdout, stderr io.Writer) *Streams {
	s := &Streams{launcher: l, stderr: stderr, merged: NewMerger(stdout)}
	s.Stdout = s.stream(s.merged, tagStdout, func(e Edit) Edit { return e })
	heard := s.said.once
	if l.PRRTE {
		heard = func(then Edit) Edit { return withoutNUL(s.said.once(then)) }
	}
	s.Stderr = s.stream(NewMerger(stderr), tagStderr, heard)
	return s
}

// stream is where one of the launcher's streams goes: whole lines reach m, tagged if that is
// wanted, and watched.
func (s *Streams) stream(m *Merger, streams string, watch func(Edit) Edit) io.WriteCloser {
	l := s.launcher
	switch {
	case l.Srun:
		return m.Source(watch(s.tasks.watch(nil)))
	case l.MPICH && l.Tag:
		return m.Source(watch(s.banner.watch(retag(l.Cluster, l.World))))
	case l.MPICH:
		return m.Source(watch(s.banner.watch(nil)))
	case l.Tag:
		return newFragments(streams, l.PRRTE, len(l.World), func(native int) io.WriteCloser {
			return m.Source(watch(tagged(l.Cluster, l.World, native)))
		})
	default:
		return m.Source(watch(nil))
	}
}

// Close passes on what is left, and says how many ranks more have said what was said once. The
// launcher must have ended.
func (s *Streams) Close() {
	s.Stdout.Close()
	s.Stderr.Close()
	last := s.stream(NewMerger(s.stderr), tagStderr, s.said.once)
	_, _ = last.Write(s.said.rest(s.launcher.Cluster))
	last.Close()
}

// Status translates the launcher's exit status. It becomes 128 + N where the launcher hides that
// signal N ended a process. 0 becomes 1 where it has lost the processes' own: MPICH's does if its
// daemon is gone first, as happens under srun after a stop. What srun says of others than those
// that failed does not count. The streams are closed.
func (s *Streams) Status(status int) int {
	switch {
	case s.launcher.Srun:
		return s.tasks.status(status)
	case status == 0 && s.launcher.MPICH && s.said.fatal():
		return 1
	}
	return s.banner.status(status)
}

// Complaint is the first error that a rank has printed; empty: none. The streams are closed.
func (s *Streams) Complaint() string {
	s.said.mu.Lock()
	defer s.said.mu.Unlock()
	if len(s.said.order) == 0 {
		return ""
	}
	return s.said.order[0]
}

// Lost is why the reader of standard output did not take all of it; see Merger.Lost.
func (s *Streams) Lost() error { return s.merged.Lost() }

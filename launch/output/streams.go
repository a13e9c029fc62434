// Package output merges the output that many processes print through their native launchers: by
// whole lines, each with the rank that it is from if the user wants that, and equal complaints of
// all ranks only once.
package output

import "io"

// Launcher describes how a cluster's native launcher passes on the output of its processes.
type Launcher struct {
	Cluster string
	// World has the rank in MPI_COMM_WORLD for each native rank.
	World []int
	// Tag tells that the launcher puts the native rank before each line, which the rank in World
	// replaces.
	Tag bool
	// MPICH tells that the launcher is MPICH's; otherwise it is Open MPI's.
	MPICH bool
	// PRRTE tells that the launcher is that of Open MPI since version 5.
	PRRTE bool
	// Srun tells that the launcher is Slurm's, for either library; Tag is then false.
	Srun bool
}

// Streams are a launcher's two streams on their way to their readers.
type Streams struct {
	// Stdout and Stderr are for the launcher; Close closes them.
	Stdout, Stderr io.WriteCloser

	launcher Launcher
	stderr   io.Writer
	// merged leads to the reader of standard output.
	merged     *Merger
	banner     hydra
	tasks      srun
	complaints dedup
}

// Open connects a launcher's streams with their readers.
func Open(l Launcher, stdout, stderr io.Writer) *Streams {
	s := &Streams{launcher: l, stderr: stderr, merged: NewMerger(stdout)}
	s.Stdout = s.stream(s.merged, tagStdout, func(e Edit) Edit { return e })
	once := s.complaints.once
	if l.PRRTE {
		once = func(then Edit) Edit { return withoutNUL(s.complaints.once(then)) }
	}
	s.Stderr = s.stream(NewMerger(stderr), tagStderr, once)
	return s
}

// stream returns the writer for one of the launcher's streams: whole lines reach m, tagged if the
// user wants that, and watched.
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

// Close passes on the remaining text, and prints how many other ranks had each complaint. The
// launcher must have ended.
func (s *Streams) Close() {
	s.Stdout.Close()
	s.Stderr.Close()
	last := s.stream(NewMerger(s.stderr), tagStderr, s.complaints.once)
	_, _ = last.Write(s.complaints.rest(s.launcher.Cluster))
	last.Close()
}

// Status translates the launcher's exit status. It becomes 128 + N where the launcher hides that
// signal N ended a process. 0 becomes 1 where the launcher has lost the status of the processes:
// MPICH's does if its daemon is gone first, as happens under srun after a stop. The statuses that
// srun has for processes other than those that failed do not count. The streams must be closed.
func (s *Streams) Status(status int) int {
	switch {
	case s.launcher.Srun:
		return s.tasks.status(status)
	case status == 0 && s.launcher.MPICH && s.complaints.fatal():
		return 1
	}
	return s.banner.status(status)
}

// Complaint returns the first error that a rank has printed, or an empty string. The streams must
// be closed.
func (s *Streams) Complaint() string {
	s.complaints.mu.Lock()
	defer s.complaints.mu.Unlock()
	if len(s.complaints.order) == 0 {
		return ""
	}
	return s.complaints.order[0]
}

// Lost returns why the reader of standard output did not take all of it; see Merger.Lost.
func (s *Streams) Lost() error { return s.merged.Lost() }

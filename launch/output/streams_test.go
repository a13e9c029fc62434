package output

import (
	"io"
	"testing"
)

// TestStatusOfProcessesIsRestored checks the translation of a launcher's exit status, by its
// output.
func TestStatusOfProcessesIsRestored(t *testing.T) {
	const lost = "MMPI: virtual rank 2: job ended by the forwarder: job j ended\n"
	for _, tc := range []struct {
		name         string
		mpich, srun  bool
		stderr       string
		status, want int
	}{
		{"good", true, false, "", 0, 0},
		{"MPICH's launcher has lost its processes' statuses", true, false, lost, 0, 1},
		{"a script went on after a program", false, false, lost, 0, 0},
		{"a rank could only not say goodbye", true, false, "MMPI: virtual rank 2: leaving the job: the link is closed\n", 0, 0},
		{"a warning", true, false, "MMPI: cluster b rank 0: warning: job j is not complete yet\n", 0, 0},
		{"a status", true, false, lost, 7, 7},
		{"a signal", true, false, "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Terminated (signal 15)\n", 15, 143},
		{"srun kills the others", false, true, "srun: error: a1: task 1: Exited with exit code 3\nsrun: error: a1: task 0: Terminated\n", 143, 3},
		{"srun, killed first", true, true, "srun: error: a1: tasks 1-2: Killed\nsrun: error: a2: task 0: Terminated\n", 143, 137},
		{"srun, a core", true, true, "srun: error: b-1.x: tasks 1,3: Segmentation fault (core dumped)\n", 139, 139},
		{"srun, all alike", true, true, lost + "srun: error: a2: tasks 0-1: Exited with exit code 1\n", 1, 1},
		{"srun, a signal that it does not name", true, true, "srun: error: a2: task 0: Real-time signal 3\n", 165, 165},
	} {
		s := Open(Launcher{Cluster: "b", World: []int{2, 3}, MPICH: tc.mpich, Srun: tc.srun}, io.Discard, io.Discard)
		if _, err := io.WriteString(s.Stderr, tc.stderr); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if got := s.Status(tc.status); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

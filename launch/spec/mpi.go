package spec

import "fmt"

// MPI names a native MPI library.
type MPI string

// The libraries there is a shim for.
const (
	OpenMPI MPI = "openmpi"
	MPICH   MPI = "mpich"
)

// ParseMPI checks a name.
func ParseMPI(s string) (MPI, error) {
	switch m := MPI(s); m {
	case OpenMPI, MPICH:
		return m, nil
	}
	return "", fmt.Errorf("mpi=%q: want openmpi or mpich", s)
}

// String is the library's own spelling.
func (m MPI) String() string {
	switch m {
	case OpenMPI:
		return "Open MPI"
	case MPICH:
		return "MPICH"
	case "":
		return "its own MPI"
	}
	return string(m)
}

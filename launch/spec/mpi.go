package spec

import "fmt"

// MPI names a native MPI library.
type MPI string

// Libraries for which there is a shim.
const (
	OpenMPI MPI = "openmpi"
	MPICH   MPI = "mpich"
)

// ParseMPI reads a library's name.
func ParseMPI(s string) (MPI, error) {
	switch m := MPI(s); m {
	case OpenMPI, MPICH:
		return m, nil
	}
	return "", fmt.Errorf("mpi=%q: want openmpi or mpich", s)
}

// String returns the library's name in its own spelling.
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

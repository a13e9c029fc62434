//go:build openmpi && !mpich

package mpi

// #cgo pkg-config: mmpi-openmpi
import "C"

// Library names the MPI library that this program was built for.
const Library = "openmpi"

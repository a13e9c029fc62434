//go:build mpich

package mpi

// #cgo pkg-config: mmpi-mpich
import "C"

// Library names the MPI library that this program was built for.
const Library = "mpich"

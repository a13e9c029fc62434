// Package mpi is a thin binding to the MPI library of one cluster: handles are opaque words, return
// codes are errors, and there is no policy. Build with -tags openmpi or -tags mpich (pkg-config
// finds MPI through mmpi-openmpi or mmpi-mpich, which also link MMPI, so that a Go program can be
// part of a zipped job). The names follow MPI's; Communicator, DataType and Op are kept from the
// earlier gompi binding.
//
// Concurrency is that of MPI at the thread level that Init has returned. Package mmpi builds the
// safe interface on top.
package mpi

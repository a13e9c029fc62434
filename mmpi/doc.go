// Package mmpi is MPI for Go programs, over one cluster or over several that are joined by a Leiden
// Zipper. A program does not see the difference: every process has a virtual rank in World.
//
// Build with -tags openmpi or -tags mpich, after scripts/build, with its lib/pkgconfig in
// PKG_CONFIG_PATH. Start the program as any MPI program (mpirun, srun, or zipper run). Without the
// zipper's environment it is a plain MPI program of one cluster. A module of your own takes the
// package from this source tree:
//
//	go mod edit -require github.com/leidenzipper/zipper@v0.0.0 -replace github.com/leidenzipper/zipper=/path/to/zipper
//	go mod tidy
//	PKG_CONFIG_PATH=/path/to/zipper/lib/pkgconfig go build -tags openmpi
//
//	p, err := mmpi.Init(mmpi.Serialized)
//	…
//	w := p.World()
//	sum := make([]float64, 1)
//	err = mmpi.Allreduce(w, []float64{float64(w.Rank())}, sum, mmpi.Sum)
//	…
//	err = p.Finalize()
//	mmpi.Exit(0)
//
// # Buffers
//
// Buffers are slices of Go's fixed-size numbers (see Scalar). Counts and displacements are in
// elements. A buffer given to a nonblocking operation belongs to MPI until its request is done; the
// package pins it. Messages are limited to 2^31-1 elements.
//
// # Concurrency
//
// The level given to Init decides. Serialized (the recommended level): any goroutine may call
// anything at any time. Calls take turns, and a waiting call never blocks the others. Funneled: one
// goroutine, which Init locks to its thread, makes all calls; this has the least overhead.
// Multiple: the MPI library itself does the locking, which costs local latency in most libraries.
// At any level, all processes must call the collectives of one communicator in the same order, so
// only one goroutine should use a communicator for them.
//
// # Errors
//
// All errors are returned (MPI_ERRORS_RETURN): a *mpi.Error with call, class and text, or a usage
// error of this package. A lost cluster or forwarder ends the process, as MPI programs expect.
package mmpi

// Package e2e runs whole jobs with bin/zipper, the native MPI libraries and a forwarder on this
// machine.
//
// The tests run when ZIPPER_E2E=1 is set (scripts/test does) and skip otherwise (go test shows "[no
// tests to run]", and with -v why); with it, something missing (a library that is not built, an MPI
// that is not installed) is a failure, not a skip. Build first: scripts/build.
//
// The oracle is the native library: the same program on the same number of ranks, once under the
// native mpirun and once zipped over clusters, must say the same.
package e2e

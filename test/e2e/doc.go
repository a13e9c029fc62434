// Package e2e runs whole jobs with bin/zipper, the native MPI libraries and a forwarder on this
// machine.
//
// The tests run if ZIPPER_E2E=1 is set (scripts/test does so) and are skipped otherwise (go test
// prints "[no tests to run]", and the reason with -v). If it is set, a missing prerequisite (a
// library that has not been built, an MPI library that is not installed) is a failure, not a skip.
// Build first: scripts/build.
//
// The oracle is the native library: the same program on the same number of ranks must print the
// same under the native mpirun and zipped over clusters.
package e2e

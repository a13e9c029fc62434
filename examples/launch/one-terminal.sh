#!/bin/sh
# One terminal, one machine: cluster a with Open MPI, cluster b with MPICH, a forwarder in between
# that zipper run starts.
#
# Runs as it stands on a machine with both MPI libraries, after scripts/build. On real clusters give
# each its host file (hosts=FILE, in the form of its own MPI) and the address of the forwarder on
# the zipper node (--zipper zip1).
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build/examples
# Every cluster needs the program built with its own MPI library. {mpi} below stands for openmpi or
# mpich.
for mpi in openmpi mpich; do mpicc.$mpi -O2 -o build/examples/cg.$mpi examples/cg/cg.c -lm; done

# a has the virtual ranks 0 and 1, b has 2 and 3. --stats shows that at the end, and what crossed
# the forwarder.
bin/zipper run --cluster a=2,mpi=openmpi --cluster b=2,mpi=mpich --stats -- "$PWD/build/examples/cg.{mpi}" 96

# The same from a job file, which also takes launcher arguments, environments and addresses per
# cluster.
bin/zipper run --file examples/launch/job.yaml

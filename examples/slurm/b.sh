#!/bin/sh
#SBATCH --job-name=pair-b
#SBATCH --ntasks=2
#SBATCH --time=10
#SBATCH --no-requeue
# Cluster b's half, with its own MPI library.
exec zipper join --env job.env --cluster b --mpi mpich -- ./cg 64

#!/bin/sh
#SBATCH --job-name=pair-a
#SBATCH --ntasks=2
#SBATCH --time=10
#SBATCH --no-requeue
# Cluster a's half: zipper join takes the hosts from Slurm, and waits for the other half.
exec zipper join --env job.env --cluster a --mpi openmpi -- ./cg 64

#!/bin/sh
# Two halves, as two batch systems would start them: each cluster runs its own script, in any order,
# knowing only the job's id, its secret, the layout, and where the forwarder is. Nothing here starts
# both.
#
# Runs as it stands on one machine: the forwarder and the two "batch scripts" are functions that run
# in the background.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build/examples
for mpi in openmpi mpich; do mpicc.$mpi -O2 -o build/examples/cg.$mpi examples/cg/cg.c -lm; done
work=$(mktemp -d)
port=$((20000 + $$ % 10000))
trap 'kill $forwarder 2>/dev/null; wait; rm -rf "$work"' EXIT

# 1. On the zipper node, once, for all jobs (dist/zipper-forwarder.service runs it as a service).
bin/zipper forwarder --listen ":$port" --status none --log warn &
forwarder=$!

# 2. The description of the job, for both halves. The secret belongs in a file that only you can
# read, copied to both clusters.
bin/zipper secret "$work/secret"
cat >"$work/job.env" <<END
ZIPPER_JOB=example-$$
ZIPPER_SECRET_FILE=$work/secret
ZIPPER_LAYOUT=a=2,b=2
ZIPPER_FORWARDERS=127.0.0.1:$port
ZIPPER_TIMEOUT=120s
END
# ZIPPER_TIMEOUT is how long a half waits for the other one: as long as the other batch queue may
# take. ZIPPER_FORWARDERS is the zipper node's address on this cluster's own network: in general
# another one in each cluster.

# 3. Cluster a's batch script: plain mpirun; zipper exec turns each process into a rank of the job.
batch_a() {
  export ZIPPER_CLUSTER=a
  if [ "$(id -u)" = 0 ]; then root=--allow-run-as-root; else root=; fi
  mpirun.openmpi $root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 2 \
    "$PWD/bin/zipper" exec --env "$work/job.env" -- build/examples/cg.openmpi 96
}

# 4. Cluster b's batch script: zipper join finds mpirun itself and cleans up.
batch_b() {
  bin/zipper join --env "$work/job.env" --cluster b --mpi mpich -- build/examples/cg.mpich 96
}

batch_b & # in any order
b=$!
batch_a
wait $b
echo "both halves ended well"

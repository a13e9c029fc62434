#!/bin/sh
# One terminal, two clusters behind ssh: zipper run logs in to one host of each cluster, starts its
# half there, streams the output back, and ends both when one fails, at Ctrl-C, or when a connection
# breaks.
#
# Runs as it stands on one machine: if ssh to localhost works without a password, that is used;
# otherwise a stand-in that runs the words it is given in a local shell, as ssh would on the other
# host. In earnest, replace localhost by the clusters' login hosts and name the forwarder's address
# on each network.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build/examples
for mpi in openmpi mpich; do mpicc.$mpi -O2 -o build/examples/cg.$mpi examples/cg/cg.c -lm; done

if ssh -o BatchMode=yes -o ConnectTimeout=5 localhost true 2>/dev/null; then
  rsh=ssh
else
  echo "no ssh to localhost without a password: using a stand-in" >&2
  rsh=$PWD/build/examples/rsh
  # shellcheck disable=SC2016 # expanded when it runs
  printf '#!/bin/sh\nshift # the host\ncd "$HOME"\nexec sh -c "$*"\n' >"$rsh"
  chmod +x "$rsh"
fi

# Without --zipper the forwarder runs inside zipper run, on this host, which both clusters must then
# reach; they are told the address by which they do. With a forwarder on a zipper node: --zipper
# zip1 (start it with zipper forwarder).
exec bin/zipper run --rsh "$rsh" \
  --cluster a=2,mpi=openmpi,launcher=ssh,login=localhost \
  --cluster b=2,mpi=mpich,launcher=ssh,login=localhost \
  --stats -- "$PWD/build/examples/cg.{mpi}" 96

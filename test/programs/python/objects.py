"""mpi4py with pickled objects: point to point, collectives, wildcards, requests."""
from mpi4py import MPI

comm = MPI.COMM_WORLD
me, np = comm.rank, comm.size
right, left = (me + 1) % np, (me - 1) % np


def thing(rank, n):
    return {"rank": rank, "list": list(range(n)), "text": "zipper" * n, "nested": [(rank, n), {"x": 1.5 * rank}]}


for n in (0, 3, 2000, 60000):
    got = comm.sendrecv(thing(me, n), dest=right, sendtag=n % 100, source=left, recvtag=n % 100)
    assert got == thing(left, n), n
    requests = [comm.isend(thing(me, n), dest=p, tag=7) for p in range(np) if p != me]
    senders = set()
    for _ in range(np - 1):
        status = MPI.Status()
        got = comm.recv(source=MPI.ANY_SOURCE, tag=7, status=status)
        assert got == thing(status.source, n)
        senders.add(status.source)
    MPI.Request.waitall(requests)
    assert senders == set(range(np)) - {me}
    comm.barrier()

request = comm.irecv(source=left, tag=3)
comm.send(("hello", me), dest=right, tag=3)
assert request.wait() == ("hello", left)
message = None
send = comm.isend({"probe": me}, dest=right, tag=4)
message = comm.mprobe(source=left, tag=4)
assert message.recv() == {"probe": left}
send.wait()

for root in range(np):
    assert comm.bcast(thing(root, 50) if me == root else None, root=root) == thing(root, 50)
    gathered = comm.gather(thing(me, me), root=root)
    assert gathered == ([thing(p, p) for p in range(np)] if me == root else None)
    assert comm.scatter([(root, p) for p in range(np)] if me == root else None, root=root) == (root, me)
assert comm.allgather("rank %d" % me) == ["rank %d" % p for p in range(np)]
assert comm.alltoall([(me, p) for p in range(np)]) == [(p, me) for p in range(np)]
assert comm.allreduce(me + 1) == np * (np + 1) // 2
assert comm.allreduce(2 ** (70 + me)) == sum(2 ** (70 + p) for p in range(np))
assert comm.allreduce([me], op=MPI.SUM) == list(range(np))  # concatenation: does not commute
assert comm.scan(me) == me * (me + 1) // 2
assert comm.exscan(me + 1) == (None if me == 0 else me * (me + 1) // 2)
assert comm.reduce(str(me), op=MPI.MAX, root=0) == (str(np - 1) if me == 0 and np <= 10 else None)

half = comm.Split(me % 2, -me)
assert half.allgather(me) == [p for p in reversed(range(np)) if p % 2 == me % 2]
half.Free()
lines = comm.gather("%d of %d: %s" % (me, np, MPI.COMM_WORLD.Get_name()), root=0)
if me == 0:
    print("\n".join(lines) + "\nok", flush=True)

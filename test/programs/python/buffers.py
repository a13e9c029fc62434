"""mpi4py with buffers: arrays, derived types, reductions, user operators, nonblocking collectives."""
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
me, np = comm.rank, comm.size
right, left = (me + 1) % np, (me - 1) % np


def ints(values):
    return array("i", values)


for n in (0, 1, 1000, 300000):
    out, inn = ints([me * 3 + i % 1000 for i in range(n)]), ints([-1] * n)
    status = MPI.Status()
    comm.Sendrecv([out, MPI.INT], dest=right, sendtag=1, recvbuf=[inn, MPI.INT], source=left, recvtag=1, status=status)
    assert inn == ints([left * 3 + i % 1000 for i in range(n)])
    assert status.Get_count(MPI.INT) == n and status.source == left
    inn = ints([-1] * n)
    requests = [comm.Irecv([inn, MPI.INT], source=MPI.ANY_SOURCE, tag=2), comm.Isend([out, MPI.INT], dest=right, tag=2)]
    MPI.Request.Waitall(requests)
    assert inn == ints([left * 3 + i % 1000 for i in range(n)])
    comm.Barrier()

vector = MPI.INT.Create_vector(4, 1, 3).Commit()
out, inn = ints(range(100 * me, 100 * me + 12)), ints([-1] * 12)
comm.Sendrecv([out, 1, vector], dest=right, recvbuf=[inn, 1, vector], source=left)
assert list(inn) == [100 * left + i if i % 3 == 0 and i < 10 else -1 for i in range(12)]
vector.Free()

a, b = array("d", [me + 0.25, 2.0 * me]), array("d", [0, 0])
comm.Allreduce([a, MPI.DOUBLE], [b, MPI.DOUBLE], op=MPI.SUM)
assert list(b) == [np * (np - 1) / 2 + 0.25 * np, np * (np - 1)]
comm.Allreduce(MPI.IN_PLACE, [a, MPI.DOUBLE], op=MPI.MAX)
assert list(a) == [np - 0.75, 2.0 * (np - 1)]


def compose(x, y, datatype):
    f, g = memoryview(x).cast("i"), memoryview(y).cast("i")
    for i in range(0, len(g), 2):
        g[i], g[i + 1] = f[i] * g[i] % 10007, (f[i + 1] * g[i] + g[i + 1]) % 10007


op = MPI.Op.Create(compose, commute=False)
pair = MPI.INT.Create_contiguous(2).Commit()
want = [1, 0]
for p in range(np):
    want = [want[0] * (p + 2) % 10007, (want[1] * (p + 2) + 2 * p + 1) % 10007]
out, inn = ints([me + 2, 2 * me + 1]), ints([0, 0])
comm.Allreduce([out, 1, pair], [inn, 1, pair], op=op)
assert list(inn) == want, (list(inn), want)
op.Free()
pair.Free()

everything = ints([-1] * (np * (np + 1) // 2))
counts = [p + 1 for p in range(np)]
displs = [p * (p + 1) // 2 for p in range(np)]
comm.Allgatherv([ints([me] * (me + 1)), MPI.INT], [everything, counts, displs, MPI.INT])
assert list(everything) == [p for p in range(np) for _ in range(p + 1)]
x, y = ints([me]), ints([0])
requests = [comm.Iallreduce([x, MPI.INT], [y, MPI.INT], op=MPI.SUM), comm.Ibarrier()]
MPI.Request.Waitall(requests)
assert y[0] == np * (np - 1) // 2
out, inn = ints(range(me * np, me * np + np)), ints([-1] * np)
comm.Alltoall([out, MPI.INT], [inn, MPI.INT])
assert list(inn) == [p * np + me for p in range(np)]
group = comm.Get_group()
new = comm.Create(group.Incl(list(range(np - 1, -1, -1))))
assert new.rank == np - 1 - me
new.Bcast([x, MPI.INT], root=0)
assert x[0] == np - 1
new.Free()
try:
    comm.Send([x, MPI.INT], dest=np + 3)
    raise SystemExit("no exception")
except MPI.Exception as e:
    assert e.Get_error_class() == MPI.ERR_RANK
total = comm.reduce(sum(inn), root=0)
if me == 0:
    print("total", total, "composition", want)
    print("ok", flush=True)

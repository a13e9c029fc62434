"""One-sided communication through mpi4py: fence, locks, fetch and op, datatypes, dynamic windows, attributes."""
from array import array

import mpi4py

mpi4py.rc.thread_level = "serialized"  # natively Open MPI's windows know no more where memory cannot be read across processes
from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD
me, np = comm.rank, comm.size
right, left = (me + 1) % np, (me - 1) % np

# Fence, on a window of memory of our own.
mine = array("i", [-1] * np)
win = MPI.Win.Create(mine, mine.itemsize, comm=comm)
win.Fence()
for r in range(np):
    win.Put([array("i", [10 * me + r]), MPI.INT], r, target=me)
win.Fence()
assert list(mine) == [10 * r + me for r in range(np)], mine
got = array("i", [0] * np)
win.Get([got, MPI.INT], right)
win.Fence()
assert list(got) == [10 * r + right for r in range(np)], got
assert win.flavor == MPI.WIN_FLAVOR_CREATE
assert win.Get_attr(MPI.WIN_DISP_UNIT) == mine.itemsize
assert win.Get_group().size == np
win.Free()

# Tickets under lock_all.
win = MPI.Win.Allocate(8, 8, comm=comm)
counter = array("q", [0])
win.Lock(me, MPI.LOCK_EXCLUSIVE)
win.Put([counter, MPI.INT64_T], me)
win.Unlock(me)
comm.Barrier()
one, ticket, mytickets = array("q", [1]), array("q", [-1]), []
win.Lock_all()
for _ in range(5):
    win.Fetch_and_op([one, MPI.INT64_T], [ticket, MPI.INT64_T], 0)
    win.Flush(0)
    mytickets.append(ticket[0])
win.Unlock_all()
drawn = sorted(t for part in comm.allgather(mytickets) for t in part)
assert drawn == list(range(5 * np)), drawn
win.Free()

# A column of a matrix, by a request.
matrix = array("d", [0.0] * 16)
column = MPI.DOUBLE.Create_vector(4, 1, 4).Commit()
win = MPI.Win.Create(matrix, matrix.itemsize, comm=comm)
win.Lock(right, MPI.LOCK_SHARED)
win.Rput([array("d", [me + 0.5 * i for i in range(4)]), MPI.DOUBLE], right, target=(1, 1, column)).Wait()
win.Unlock(right)
comm.Barrier()
assert [matrix[1 + 4 * i] for i in range(4)] == [left + 0.5 * i for i in range(4)], matrix
assert sum(matrix) == sum(left + 0.5 * i for i in range(4))
comm.Barrier()
win.Free()
column.Free()

lines = comm.gather(f"{me}: {list(mine)} {drawn[-1]}")
if me == 0:
    print("\n".join(lines))
    print("ok")

"""mpi4py.futures without spawning: MPICommExecutor over the world and over a communicator that interleaves its halves, or, under
`python3 -m mpi4py.futures`, the pool of the workers that are there."""
import sys
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor, MPIPoolExecutor


def square(x):
    return x * x


def length(text, n):
    return len(text * n)


def fail(x):
    raise ValueError(f"task {x}")


def use(pool, what):
    lines = [f"{what} {list(pool.map(square, range(40)))}",
             f"{what} {sum(pool.map(square, range(200), chunksize=16, unordered=True))}",
             f"{what} {list(pool.starmap(length, [('zipper', 10**k) for k in range(6)]))}"]
    try:
        pool.submit(fail, 3).result(timeout=60)
    except ValueError as e:
        lines.append(f"{what} error: {e}")
    return lines


def executor(comm, root, what):
    lines = []
    with MPICommExecutor(comm, root=root) as pool:
        assert (pool is not None) == (comm.rank == root)
        if pool is not None:
            lines = use(pool, what)
    lines = MPI.COMM_WORLD.reduce(lines)
    if MPI.COMM_WORLD.rank == 0:
        print("\n".join(lines))


if __name__ == "__main__":
    if sys.argv[1:] == ["pool"]:
        with MPIPoolExecutor() as pool:
            print("\n".join(use(pool, "pool")))
    else:
        world = MPI.COMM_WORLD
        executor(world, 0, "world")
        executor(world, world.size - 1, "last")
        turned = world.Split(0, (world.rank % 2) * world.size + world.rank)
        executor(turned, 0, "turned")
        turned.Free()

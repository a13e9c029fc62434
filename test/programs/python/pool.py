"""mpi4py.futures' pool of workers that rank 0 spawns, while all ranks are in a collective."""
from mpi4py import MPI
from mpi4py.futures import MPIPoolExecutor


def square(x):
    return x * x


if __name__ == "__main__":
    world = MPI.COMM_WORLD
    if world.rank == 0:
        with MPIPoolExecutor(max_workers=2) as pool:
            assert list(pool.map(square, range(50))) == [x * x for x in range(50)]
            assert pool.submit(len, b"x" * 300_000).result() == 300_000
    world.barrier()
    if world.rank == 0:
        print("ok")

"""MPI through ctypes, without mpi4py: opened.py LIBRARY. As a binding of any interpreter works."""
import ctypes
import sys

name = sys.argv[1]
mpi = ctypes.CDLL(name)


def handle(openmpi, mpich, abi):
    """Handles are addresses in Open MPI, numbers in MPICH, small ones in MPI 5's standard ABI."""
    if "_abi" in name:
        return ctypes.c_void_p(abi)
    try:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, openmpi)))
    except ValueError:
        return ctypes.c_int(mpich)


world = handle("ompi_mpi_comm_world", 0x44000000, 0x101)
double = handle("ompi_mpi_double", 0x4C00080B, 0x214)
largest = handle("ompi_mpi_op_max", 0x58000001, 0x23)
byte = handle("ompi_mpi_byte", 0x4C00010D, 0x247)

mpi.MPI_Init(None, None)
me, n = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(me))
mpi.MPI_Comm_size(world, ctypes.byref(n))
mine = (ctypes.c_double * 2)(me.value + 0.5, -me.value)
most = (ctypes.c_double * 2)()
mpi.MPI_Allreduce(mine, most, 2, double, largest, world)
text = ctypes.create_string_buffer(b"from rank 0" if me.value == 0 else b"", 32)
mpi.MPI_Bcast(text, 32, byte, 0, world)
print(f"{me.value} of {n.value}: {list(most)} {text.value.decode()}", flush=True)
mpi.MPI_Finalize()

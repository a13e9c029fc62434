"""mpi4py while timers call Python's signal handlers, beside faulthandler, which sets a small alternate stack."""
import faulthandler
import signal
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
me, np = comm.rank, comm.size
right, left = (me + 1) % np, (me - 1) % np
samples = {signal.SIGALRM: 0, signal.SIGPROF: 0, signal.SIGVTALRM: 0}


def deep(k):
    return 1 if k == 0 else deep(k - 1)


def sample(number, frame):
    samples[number] += deep(50)


for number, timer in ((signal.SIGALRM, signal.ITIMER_REAL), (signal.SIGPROF, signal.ITIMER_PROF),
                      (signal.SIGVTALRM, signal.ITIMER_VIRTUAL)):
    assert signal.signal(number, sample) == signal.SIG_DFL
    signal.siginterrupt(number, False)
    signal.setitimer(timer, 0.0005, 0.0005)
    assert signal.getsignal(number) is sample
faulthandler.enable()

for i in range(2000):
    n = i % 1000 + 1
    out, inn = array("i", [me + i] * n), array("i", [-1] * n)
    comm.Sendrecv([out, MPI.INT], dest=right, recvbuf=[inn, MPI.INT], source=left)
    assert inn == array("i", [left + i] * n)
    requests = [comm.Irecv([inn, MPI.INT], source=left), comm.Isend([out, MPI.INT], dest=right)]
    MPI.Request.Waitall(requests)
    assert comm.allreduce(me + i) == np * i + np * (np - 1) // 2
    if i % 500 == 0:
        faulthandler.disable()
        faulthandler.enable()
while not all(samples.values()):
    deep(50)
for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF, signal.ITIMER_VIRTUAL):
    signal.setitimer(timer, 0)
if me == 0:
    print(np, "processes")

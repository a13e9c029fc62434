# R's own profiler, which interrupts by SIGPROF, over Rmpi.
library(Rmpi, quietly = TRUE)

me <- mpi.comm.rank(0)
n <- mpi.comm.size(0)
rounds <- as.integer(commandArgs(trailingOnly = TRUE)[1])
profile <- tempfile()
Rprof(profile, interval = 0.001)

# Calls that are deep, whose stack the profiler writes down.
deep <- function(k) if (k == 0) sum(sqrt(1:50)) else deep(k - 1)

for (i in seq_len(rounds)) {
  deep(40)
  got <- mpi.sendrecv(as.double(me + i * 1:20), 2, (me + 1) %% n, 0, double(20), 2, (me - 1) %% n, 0, comm = 0)
  stopifnot(got == (me - 1) %% n + i * 1:20)
  total <- mpi.allreduce(as.double(me + i), type = 2, op = "sum", comm = 0)
  stopifnot(total == n * i + n * (n - 1) / 2)
}
while (length(readLines(profile, warn = FALSE)) < 2) for (i in 1:1000) deep(40)
Rprof(NULL)
if (me == 0) cat(n, "processes,", rounds, "rounds\n")
invisible(mpi.finalize())

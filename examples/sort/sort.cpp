// Sample sort: every process holds some numbers; at the end process 0 holds the smallest, in order,
// then process 1, and so on.
//
//   zipper cxx -O2 -o sort examples/sort/sort.cpp && zipper run --cluster a=2 --cluster b=2 -- ./sort
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  std::mt19937 random(rank + 1);
  std::vector<unsigned> mine(20000);
  std::generate(mine.begin(), mine.end(), random);
  std::sort(mine.begin(), mine.end());

  // Every process offers `size` numbers of its own; the limits between processes are taken from all of them.
  std::vector<unsigned> offer(size), offers(size * size);
  for (int i = 0; i < size; i++) offer[i] = mine[mine.size() * i / size];
  MPI_Allgather(offer.data(), size, MPI_UNSIGNED, offers.data(), size, MPI_UNSIGNED, MPI_COMM_WORLD);
  std::sort(offers.begin(), offers.end());

  std::vector<int> out(size), outAt(size), in(size), inAt(size);
  for (int p = 0; p < size; p++) {
    auto from = p == 0 ? mine.begin() : std::lower_bound(mine.begin(), mine.end(), offers[p * size]);
    auto to = p == size - 1 ? mine.end() : std::lower_bound(mine.begin(), mine.end(), offers[(p + 1) * size]);
    out[p] = to - from, outAt[p] = from - mine.begin();
  }
  MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::exclusive_scan(in.begin(), in.end(), inAt.begin(), 0);
  std::vector<unsigned> sorted(inAt.back() + in.back());
  MPI_Alltoallv(mine.data(), out.data(), outAt.data(), MPI_UNSIGNED, sorted.data(), in.data(), inAt.data(), MPI_UNSIGNED, MPI_COMM_WORLD);
  std::sort(sorted.begin(), sorted.end());

  // In order if nothing here is below the largest of the process before; and nothing may be lost.
  unsigned largest = sorted.empty() ? 0 : sorted.back(), below = 0;
  MPI_Exscan(&largest, &below, 1, MPI_UNSIGNED, MPI_MAX, MPI_COMM_WORLD);
  int wrong = rank > 0 && !sorted.empty() && sorted.front() < below;
  long have = sorted.size(), sums[2] = {have, wrong};
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%ld numbers, %s\n", sums[0], sums[1] == 0 && sums[0] == 20000L * size ? "sorted" : "NOT sorted");
  MPI_Finalize();
  return sums[1] != 0;
}

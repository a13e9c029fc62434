/* Every rank exchanges a megabyte with the rank half the ranks away, ten times: a job whose best
 * plan puts such pairs together. With the argument "where" every rank's line names its host. */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv) {
  enum { bytes = 1 << 20 };
  static char out[bytes], in[bytes];
  start(&argc, &argv);
  int half = np / 2, other = (me + half) % np;
  for (int i = 0; i < 10 && np % 2 == 0; i++) {
    fill(out, bytes, me * 100 + i);
    MPI_Sendrecv(out, bytes, MPI_BYTE, other, i, in, bytes, MPI_BYTE, other, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(in, bytes, other * 100 + i), "exchange %d with %d", i, other);
  }
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  if (argc > 1) line("on %s", host);
  else line("exchanged with %d", other);
  return finish();
}

/* C++: templates over MPI's types, an operator of the program's own, a derived type of a class,
 * persistent requests kept in objects, and exceptions made from MPI's error codes. */
#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdio>
#include <mpi.h>
#include <stdexcept>
#include <string>
#include <vector>

template <class T> MPI_Datatype type();
template <> MPI_Datatype type<int>() { return MPI_INT; }
template <> MPI_Datatype type<double>() { return MPI_DOUBLE; }
template <> MPI_Datatype type<std::complex<double>>() { return MPI_CXX_DOUBLE_COMPLEX; }
template <> MPI_Datatype type<bool>() { return MPI_CXX_BOOL; }

struct failure : std::runtime_error {
  int what_class;
  failure(int c, const char *text) : std::runtime_error(text), what_class(c) {}
};

static void check(int rc) {
  if (rc == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int n, c;
  MPI_Error_string(rc, text, &n);
  MPI_Error_class(rc, &c);
  throw failure(c, text);
}

template <class T> static std::vector<T> reduce_all(const std::vector<T> &in, MPI_Op op) {
  std::vector<T> out(in.size());
  check(MPI_Allreduce(in.data(), out.data(), (int)in.size(), type<T>(), op, MPI_COMM_WORLD));
  return out;
}

struct sample {
  int id;
  double weight[3];
  char tag;
};

/* Takes the heavier of two samples, or with equal weights the one with the smaller number. */
static void heavier(void *in, void *inout, int *n, MPI_Datatype *) {
  auto *a = static_cast<sample *>(in), *b = static_cast<sample *>(inout);
  for (int i = 0; i < *n; i++)
    if (a[i].weight[0] > b[i].weight[0] || (a[i].weight[0] == b[i].weight[0] && a[i].id < b[i].id)) b[i] = a[i];
}

class channel { /* a pair of persistent requests that end with the object */
  MPI_Request r[2];

public:
  channel(const std::vector<double> &out, std::vector<double> &in, int to, int from) {
    check(MPI_Send_init(out.data(), (int)out.size(), MPI_DOUBLE, to, 5, MPI_COMM_WORLD, &r[0]));
    check(MPI_Recv_init(in.data(), (int)in.size(), MPI_DOUBLE, from, 5, MPI_COMM_WORLD, &r[1]));
  }
  channel(const channel &) = delete;
  channel &operator=(const channel &) = delete;
  ~channel() {
    for (auto &q : r) MPI_Request_free(&q);
  }
  void turn() {
    check(MPI_Startall(2, r));
    check(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
  }
};

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int me, n;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

  auto sums = reduce_all<int>({me, me * me, 1}, MPI_SUM);
  auto most = reduce_all<double>({me + 0.5, -me - 0.25}, MPI_MAX);
  auto product = reduce_all<std::complex<double>>({{0.0, 1.0}, {1.0, (double)me}}, MPI_PROD);
  bool odd = me % 2, any = false;
  check(MPI_Allreduce(&odd, &any, 1, type<bool>(), MPI_LOR, MPI_COMM_WORLD));
  std::printf("%d: %d %d %d, %g %g, (%g,%g) (%g,%g), %d\n", me, sums[0], sums[1], sums[2], most[0], most[1],
              product[0].real() + 0.0, product[0].imag(), product[1].real(), product[1].imag(),
              any); /* -0: by the order */

  int lengths[] = {1, 3, 1};
  MPI_Aint places[] = {offsetof(sample, id), offsetof(sample, weight), offsetof(sample, tag)};
  MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, plain, whole;
  check(MPI_Type_create_struct(3, lengths, places, parts, &plain));
  check(MPI_Type_create_resized(plain, 0, sizeof(sample), &whole));
  check(MPI_Type_commit(&whole));
  MPI_Op op;
  check(MPI_Op_create(heavier, 1, &op));
  std::vector<sample> mine(1000), best(mine.size());
  for (int i = 0; i < (int)mine.size(); i++) mine[i] = {me, {(double)((i * 7 + me * 13) % 17), 1, 2}, (char)('a' + me)};
  check(MPI_Allreduce(mine.data(), best.data(), (int)mine.size(), whole, op, MPI_COMM_WORLD));
  long weight = 0, ids = 0, tags = 0;
  for (auto &s : best) weight += (long)s.weight[0], ids += s.id, tags += s.tag;
  std::printf("%d: the heaviest weigh %ld, of %ld, tagged %ld\n", me, weight, ids, tags);
  check(MPI_Op_free(&op));
  check(MPI_Type_free(&whole));
  check(MPI_Type_free(&plain));

  std::vector<double> out(5000, me), in(5000, -1);
  {
    channel ring(out, in, (me + 1) % n, (me + n - 1) % n);
    for (int turn = 0; turn < 2 * n; turn++) {
      ring.turn();
      std::transform(in.begin(), in.end(), out.begin(), [](double x) { return x + 1; });
    }
  }
  std::printf("%d: after two rounds %g\n", me, out[4999]);

  try {
    check(MPI_Send(out.data(), 1, MPI_DOUBLE, n, 0, MPI_COMM_WORLD));
    std::printf("%d: a send to nobody went\n", me);
  } catch (const failure &f) {
    std::printf("%d: caught %s\n", me, f.what_class == MPI_ERR_RANK ? "the error of class MPI_ERR_RANK" : f.what());
  }
  MPI_Finalize();
  return 0;
}

/* Common functions of the test programs. A program collects lines of results, which must be the
 * same on every run and under every interleaving; at the end rank 0 prints the lines of all ranks
 * in the order of rank. Results that a program can check by itself it checks (CHECK): a failure is
 * printed on standard error at once and makes the exit status 1. */
#ifndef CHECK_H
#define CHECK_H
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, np; /* rank and size in MPI_COMM_WORLD */
static int failures;
static char *report_text;
static size_t report_len, report_cap;

static inline void line(const char *format, ...) {
  va_list ap;
  if (report_cap - report_len < 1024) report_text = realloc(report_text, report_cap = report_cap * 2 + 4096);
  report_len += snprintf(report_text + report_len, 1024, "%d: ", me);
  va_start(ap, format);
  int n = vsnprintf(report_text + report_len, 1000, format, ap);
  va_end(ap);
  report_len += n < 1000 ? n : 999;
  report_text[report_len++] = '\n';
}

static inline void failed(const char *file, int where, const char *format, ...) {
  char text[600];
  va_list ap;
  if (++failures > 20) return;
  int n = snprintf(text, sizeof text, "%s:%d: rank %d: ", file, where, me);
  va_start(ap, format);
  n += vsnprintf(text + n, sizeof text - n, format, ap);
  va_end(ap);
  fprintf(stderr, "%.*s\n", n < (int)sizeof text ? n : (int)sizeof text - 1, text);
}
#define CHECK(condition, ...) ((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition " fails: " __VA_ARGS__))
#define SAME(got, want, what)                                                                  \
  do {                                                                                         \
    long long got_ = (long long)(got), want_ = (long long)(want);                              \
    if (got_ != want_) failed(__FILE__, __LINE__, "%s is %lld, want %lld", what, got_, want_); \
  } while (0)

/* FNV-1a */
static inline uint64_t digest(uint64_t h, const void *p, size_t n) {
  const unsigned char *c = p;
  if (h == 0) h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < n; i++) h = (h ^ c[i]) * 0x100000001b3u;
  return h;
}

/* splitmix64: a well mixed function of x */
static inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
static inline uint64_t draw(uint64_t *state) { return mix((*state)++); }
static inline int below(uint64_t *state, int n) { return (int)(draw(state) % (uint64_t)n); }

/* Fill a buffer with a pattern that depends on every argument, and check whether a buffer holds
 * it. */
static inline void fill(void *p, size_t n, uint64_t seed) {
  unsigned char *c = p;
  for (size_t i = 0; i < n; i += 8) {
    uint64_t x = mix(seed * 0x10001 + i);
    memcpy(c + i, &x, n - i < 8 ? n - i : 8);
  }
}
static inline int filled(const void *p, size_t n, uint64_t seed) {
  const unsigned char *c = p;
  for (size_t i = 0; i < n; i += 8) {
    uint64_t x = mix(seed * 0x10001 + i);
    if (memcmp(c + i, &x, n - i < 8 ? n - i : 8)) return 0;
  }
  return 1;
}

static inline void start(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
}

/* Prints the report of all ranks of comm, in which this process has rank `me`. */
static inline void report(MPI_Comm comm) {
  enum { tag = 32001 };
  if (me != 0) {
    long n[2] = {(long)report_len, failures};
    MPI_Send(n, 2, MPI_LONG, 0, tag, comm);
    MPI_Send(report_text, (int)report_len, MPI_CHAR, 0, tag, comm);
  } else {
    if (report_len) fwrite(report_text, 1, report_len, stdout);
    for (int r = 1; r < np; r++) {
      long n[2];
      MPI_Recv(n, 2, MPI_LONG, r, tag, comm, MPI_STATUS_IGNORE);
      char *text = malloc(n[0] + 1);
      MPI_Recv(text, (int)n[0], MPI_CHAR, r, tag, comm, MPI_STATUS_IGNORE);
      fwrite(text, 1, n[0], stdout);
      free(text);
      failures += n[1];
    }
    puts(failures ? "FAILED" : "ok");
    fflush(stdout);
  }
  free(report_text);
}

/* Prints the report and ends MPI. Returns the exit status. */
static inline int finish(void) {
  report(MPI_COMM_WORLD);
  MPI_Finalize();
  return failures != 0;
}
#endif

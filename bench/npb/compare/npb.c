/* CG, MG and IS on one process in plain C: the yardstick for the speed of the Go kernels
 * (bench/npb). Same algorithms, same class tables, same verification, but IS verifies only that the
 * keys are in order and none is lost. Build: cc -O3 -o npb-c npb.c -lm. Run: npb-c cg|mg|is
 * S|W|A|B. Prints seconds and verified or not. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static uint64_t state;
static double next(void) {
  state = state * 1220703125u & ((1ULL << 46) - 1);
  return state * (1.0 / (1ULL << 46));
}

static int report(const char *kernel, char class, double seconds, int ok) {
  printf("{\"kernel\":\"%s\",\"class\":\"%c\",\"seconds\":%.6f,\"verified\":%s}\n", kernel, class, seconds,
         ok ? "true" : "false");
  return ok ? 0 : 1;
}

/* ---- CG ---- */
static int n, *start, *col;
static double *val;

static void make_matrix(int nonzer, double rcond, double shift) {
  int pow2 = 1, *idx = malloc(sizeof(int) * (nonzer + 1)), *seen = calloc(n, sizeof(int));
  while (pow2 < n) pow2 *= 2;
  double *v = malloc(sizeof(double) * (nonzer + 1)), ratio = pow(rcond, 1.0 / n), size = 1;
  size_t terms = (size_t)n * (nonzer + 1) * (nonzer + 1), used = 0;
  int *trow = malloc(sizeof(int) * terms), *tcol = malloc(sizeof(int) * terms);
  double *tval = malloc(sizeof(double) * terms);
  for (int i = 0; i < n; i++) {
    int k = 0, found = 0;
    while (k < nonzer) {
      double x = next();
      int at = (int)(pow2 * next());
      if (at >= n || seen[at] == i + 1) continue;
      seen[at] = i + 1;
      idx[k] = at;
      v[k++] = x;
    }
    for (int l = 0; l < k; l++)
      if (idx[l] == i) v[l] = 0.5, found = 1;
    if (!found) idx[k] = i, v[k++] = 0.5;
    for (int a = 0; a < k; a++)
      for (int b = 0; b < k; b++) {
        double x = v[b] * (size * v[a]);
        if (idx[a] == idx[b] && idx[a] == i) x += rcond - shift;
        trow[used] = idx[a];
        tcol[used] = idx[b];
        tval[used++] = x;
      }
    size *= ratio;
  }
  size_t *first = calloc(n + 2, sizeof(size_t)), *order = malloc(sizeof(size_t) * used);
  for (size_t t = 0; t < used; t++) first[trow[t] + 2]++;
  for (int i = 0; i <= n; i++) first[i + 1] += first[i];
  for (size_t t = 0; t < used; t++) order[first[trow[t] + 1]++] = t;
  start = malloc(sizeof(int) * (n + 1));
  col = malloc(sizeof(int) * used);
  val = malloc(sizeof(double) * used);
  int *place = calloc(n, sizeof(int)), len = 0;
  for (int i = 0; i < n; i++) {
    int from = len;
    start[i] = len;
    for (size_t o = first[i]; o < first[i + 1]; o++) {
      size_t t = order[o];
      int c = tcol[t], p = place[c];
      if (p >= from && p < len && col[p] == c) {
        val[p] += tval[t];
        continue;
      }
      place[c] = len;
      col[len] = c;
      val[len++] = tval[t];
    }
  }
  start[n] = len;
  free(trow);
  free(tcol);
  free(tval);
  free(first);
  free(order);
  free(place);
  free(idx);
  free(seen);
  free(v);
}

static double dot(const double *a, const double *b) {
  double s = 0;
  for (int i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}

static int cg(char class) {
  int nonzer, steps = class == 'B' ? 75 : 15;
  double shift, want;
  switch (class) {
  case 'S': n = 1400, nonzer = 7, shift = 10, want = 8.5971775078648; break;
  case 'W': n = 7000, nonzer = 8, shift = 12, want = 10.362595087124; break;
  case 'A': n = 14000, nonzer = 11, shift = 20, want = 17.130235054029; break;
  case 'B': n = 75000, nonzer = 13, shift = 60, want = 22.712745482631; break;
  default: return 2;
  }
  state = 314159265;
  next();
  make_matrix(nonzer, 0.1, shift);
  double *x = malloc(8 * n), *z = malloc(8 * n), *p = malloc(8 * n), *q = malloc(8 * n), *r = malloc(8 * n), zeta = 0,
         t = 0;
  for (int timed = 0; timed < 2; timed++) {
    for (int i = 0; i < n; i++) x[i] = 1;
    t = now();
    for (int s = 0; s < (timed ? steps : 1); s++) {
      for (int i = 0; i < n; i++) z[i] = 0, r[i] = p[i] = x[i];
      double rho = dot(r, r);
      for (int it = 0; it < 25; it++) {
        for (int i = 0; i < n; i++) {
          double sum = 0;
          for (int k = start[i]; k < start[i + 1]; k++) sum += val[k] * p[col[k]];
          q[i] = sum;
        }
        double alpha = rho / dot(p, q), nrho = 0;
        for (int i = 0; i < n; i++) {
          z[i] += alpha * p[i];
          r[i] -= alpha * q[i];
          nrho += r[i] * r[i];
        }
        double beta = nrho / rho;
        rho = nrho;
        for (int i = 0; i < n; i++) p[i] = r[i] + beta * p[i];
      }
      zeta = shift + 1 / dot(x, z);
      double f = 1 / sqrt(dot(z, z));
      for (int i = 0; i < n; i++) x[i] = f * z[i];
    }
    t = now() - t;
  }
  return report("CG", class, t, fabs((zeta - want) / want) <= 1e-10);
}

/* ---- IS ---- */
static int is(char class) {
  int bits = class == 'S'   ? 16
             : class == 'W' ? 20
             : class == 'A' ? 23
                            : 25,
      mbits = class == 'S'   ? 11
              : class == 'W' ? 16
              : class == 'A' ? 19
                             : 21;
  int keys = 1 << bits, max = 1 << mbits, nb = 1024 < max ? 1024 : max, shift = 0;
  while (max >> shift > nb) shift++;
  int32_t *key = malloc(4L * keys), *sorted = malloc(4L * keys), *count = malloc(4L * max);
  int *ptr = malloc(sizeof(int) * (nb + 1));
  state = 314159265;
  for (int i = 0; i < keys; i++) {
    double x = next();
    x += next();
    x += next();
    x += next();
    key[i] = (int32_t)(max / 4 * x);
  }
  double t = 0;
  for (int step = 0; step <= 10; step++) {
    if (step == 1) t = now();
    int it = step ? step : 1;
    key[it] = it;
    key[it + 10] = max - it;
    memset(ptr, 0, sizeof(int) * (nb + 1));
    for (int i = 0; i < keys; i++) ptr[(key[i] >> shift) + 1]++;
    for (int b = 0; b < nb; b++) ptr[b + 1] += ptr[b];
    for (int i = 0; i < keys; i++) sorted[ptr[key[i] >> shift]++] = key[i];
    memset(count, 0, 4L * max);
    for (int i = 0; i < keys; i++) count[sorted[i]]++;
    for (int i = 1; i < max; i++) count[i] += count[i - 1];
  }
  t = now() - t;
  int ok = count[max - 1] == keys;
  for (int i = 0; i < keys; i++) sorted[--count[key[i]]] = key[i];
  for (int i = 1; i < keys; i++) ok &= sorted[i - 1] <= sorted[i];
  return report("IS", class, t, ok);
}

/* ---- MG: fields with one ghost layer, (m+2)^3 values ---- */
#define AT(g, z, y, x) (g)[((size_t)(z) * (m + 2) + (y)) * (m + 2) + (x)]
static double *t1, *t2;

static void wrap(double *g, int m) {
  for (int z = 1; z <= m; z++)
    for (int y = 1; y <= m; y++) AT(g, z, y, 0) = AT(g, z, y, m), AT(g, z, y, m + 1) = AT(g, z, y, 1);
  size_t line = sizeof(double) * (m + 2);
  for (int z = 1; z <= m; z++)
    memcpy(&AT(g, z, 0, 0), &AT(g, z, m, 0), line), memcpy(&AT(g, z, m + 1, 0), &AT(g, z, 1, 0), line);
  memcpy(&AT(g, 0, 0, 0), &AT(g, m, 0, 0), line * (m + 2));
  memcpy(&AT(g, m + 1, 0, 0), &AT(g, 1, 0, 0), line * (m + 2));
}
static void sums(const double *g, int m, int z, int y) {
  for (int i = 0; i < m + 2; i++) {
    t1[i] = AT(g, z, y - 1, i) + AT(g, z, y + 1, i) + AT(g, z - 1, y, i) + AT(g, z + 1, y, i);
    t2[i] = AT(g, z - 1, y - 1, i) + AT(g, z - 1, y + 1, i) + AT(g, z + 1, y - 1, i) + AT(g, z + 1, y + 1, i);
  }
}
static void residual(const double *u, const double *v, double *r, int m) {
  for (int z = 1; z <= m; z++)
    for (int y = 1; y <= m; y++) {
      sums(u, m, z, y);
      for (int i = 1; i <= m; i++)
        AT(r, z, y, i) = AT(v, z, y, i) + 8.0 / 3 * AT(u, z, y, i) - 1.0 / 6 * (t2[i] + t1[i - 1] + t1[i + 1]) -
                         1.0 / 12 * (t2[i - 1] + t2[i + 1]);
    }
  wrap(r, m);
}
static void smooth(const double *r, double *u, int m, const double *c) {
  for (int z = 1; z <= m; z++)
    for (int y = 1; y <= m; y++) {
      sums(r, m, z, y);
      for (int i = 1; i <= m; i++)
        AT(u, z, y, i) += c[0] * AT(r, z, y, i) + c[1] * (AT(r, z, y, i - 1) + AT(r, z, y, i + 1) + t1[i]) +
                          c[2] * (t2[i] + t1[i - 1] + t1[i + 1]);
    }
  wrap(u, m);
}
static void restrict_(const double *f, double *c, int fine) {
  int half = fine / 2;
  for (int z = 1; z <= half; z++)
    for (int y = 1; y <= half; y++) {
      sums(f, fine, 2 * z, 2 * y);
      int m = fine;
      const double *row = &AT(f, 2 * z, 2 * y, 0);
      m = half;
      for (int x = 1; x <= half; x++) {
        int i = 2 * x;
        AT(c, z, y, x) = 0.5 * row[i] + 0.25 * (row[i - 1] + row[i + 1] + t1[i]) +
                         0.125 * (t2[i] + t1[i - 1] + t1[i + 1]) + 0.0625 * (t2[i - 1] + t2[i + 1]);
      }
    }
  wrap(c, half);
}
static void interpolate(const double *c, double *f, int half) {
  int fine = 2 * half;
  for (int z = 0; z <= half; z++)
    for (int y = 0; y <= half; y++) {
      int m = half;
      const double *a = &AT(c, z, y, 0), *b = &AT(c, z, y + 1, 0), *d = &AT(c, z + 1, y, 0),
                   *e = &AT(c, z + 1, y + 1, 0);
      m = fine;
      double *o = &AT(f, 2 * z, 2 * y, 0), *oy = &AT(f, 2 * z, 2 * y + 1, 0), *oz = &AT(f, 2 * z + 1, 2 * y, 0),
             *oyz = &AT(f, 2 * z + 1, 2 * y + 1, 0);
      for (int x = 0; x <= half; x++) {
        int i = 2 * x;
        double p = b[x] + a[x], q = d[x] + a[x], s = e[x] + d[x] + p, p1 = b[x + 1] + a[x + 1],
               q1 = d[x + 1] + a[x + 1], s1 = e[x + 1] + d[x + 1] + p1;
        o[i] += a[x];
        o[i + 1] += 0.5 * (a[x + 1] + a[x]);
        oy[i] += 0.5 * p;
        oy[i + 1] += 0.25 * (p + p1);
        oz[i] += 0.5 * q;
        oz[i + 1] += 0.25 * (q + q1);
        oyz[i] += 0.25 * s;
        oyz[i + 1] += 0.125 * (s + s1);
      }
    }
}
static int mg(char class) {
  int m = class == 'S' ? 32 : class == 'W' ? 128 : 256, steps = class == 'B' ? 20 : 4, levels = 0;
  double want = class == 'S'   ? 0.5307707005734e-04
                : class == 'W' ? 0.6467329375339e-05
                : class == 'A' ? 0.2433365309069e-05
                               : 0.1800564401355e-05;
  double ca[3] = {-3.0 / 8, 1.0 / 32, -1.0 / 64}, cb[3] = {-3.0 / 17, 1.0 / 33, -1.0 / 61}, *c = class == 'B' ? cb : ca;
  double *u[16], *r[16], *v = NULL, t = 0, norm = 0;
  int size[16];
  t1 = malloc(8 * (m + 2));
  t2 = malloc(8 * (m + 2));
  for (int k = 2; k <= m; k *= 2, levels++) {
    size_t cells = (size_t)(k + 2) * (k + 2) * (k + 2);
    size[levels] = k;
    u[levels] = calloc(cells, 8);
    r[levels] = calloc(cells, 8);
    if (k == m) v = calloc(cells, 8);
  }
  int top = levels - 1;
  double hi[10], lo[10];
  size_t hp[10], lp[10];
  for (int i = 0; i < 10; i++) hi[i] = -1, lo[i] = 2, hp[i] = lp[i] = 0;
  state = 314159265;
  for (size_t i = 0; i < (size_t)m * m * m; i++) {
    double x = next();
    if (x > hi[9]) {
      int k = 9;
      while (k > 0 && x > hi[k - 1]) hi[k] = hi[k - 1], hp[k] = hp[k - 1], k--;
      hi[k] = x, hp[k] = i;
    }
    if (x < lo[9]) {
      int k = 9;
      while (k > 0 && x < lo[k - 1]) lo[k] = lo[k - 1], lp[k] = lp[k - 1], k--;
      lo[k] = x, lp[k] = i;
    }
  }
  for (int i = 0; i < 10; i++) {
    AT(v, hp[i] / m / m + 1, hp[i] / m % m + 1, hp[i] % m + 1) = 1;
    AT(v, lp[i] / m / m + 1, lp[i] / m % m + 1, lp[i] % m + 1) = -1;
  }
  wrap(v, m);
  for (int timed = 0; timed < 2; timed++) {
    for (int k = 0; k < levels; k++) {
      size_t bytes = 8 * (size_t)(size[k] + 2) * (size[k] + 2) * (size[k] + 2);
      memset(u[k], 0, bytes);
      memset(r[k], 0, bytes);
    }
    t = now();
    residual(u[top], v, r[top], m);
    for (int s = 0; s < (timed ? steps : 1); s++) {
      for (int k = top; k > 0; k--) restrict_(r[k], r[k - 1], size[k]);
      memset(u[0], 0, 8 * 64);
      smooth(r[0], u[0], 2, c);
      for (int k = 1; k <= top; k++) {
        if (k < top) memset(u[k], 0, 8 * (size_t)(size[k] + 2) * (size[k] + 2) * (size[k] + 2));
        interpolate(u[k - 1], u[k], size[k - 1]);
        residual(u[k], k == top ? v : r[k], r[k], size[k]);
        smooth(r[k], u[k], size[k], c);
      }
      residual(u[top], v, r[top], m);
    }
    norm = 0;
    for (int z = 1; z <= m; z++)
      for (int y = 1; y <= m; y++)
        for (int x = 1; x <= m; x++) norm += AT(r[top], z, y, x) * AT(r[top], z, y, x);
    norm = sqrt(norm / ((double)m * m * m));
    t = now() - t;
  }
  return report("MG", class, t, fabs((norm - want) / want) <= 1e-8);
}

int main(int argc, char **argv) {
  char class = argc == 3 ? argv[2][0] : 0;
  if (!class || !strchr("SWAB", class)) return fprintf(stderr, "usage: npb-c cg|mg|is S|W|A|B\n"), 2;
  if (!strcmp(argv[1], "cg")) return cg(class);
  if (!strcmp(argv[1], "mg")) return mg(class);
  if (!strcmp(argv[1], "is")) return is(class);
  return fprintf(stderr, "no kernel %s\n", argv[1]), 2;
}

/* libmmpi-audit.so is the LD_AUDIT library of programs that are not linked to MPI themselves:
 * interpreters whose extensions are, and programs that open an MPI library with dlopen.
 *
 * Preloading does not reach all of them. dlsym with a library's handle finds that library's own
 * symbols, whatever is preloaded, and so do the calls of an object that was opened with
 * RTLD_DEEPBIND.
 *
 * So the loader gets MMPI's library instead of the MPI library: where an object needs or opens
 * libmpi.so.40, it gets libmmpi-openmpi-opened.so. That is a copy of libmmpi-openmpi.so that needs
 * the true library by another name, libmpi-so.40, because from then on the loader takes the usual
 * name for MMPI's library. So the same program can use either library, or MPI 5's standard ABI.
 *
 * The loader loads this library into a namespace of its own, with a C library of its own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dlfcn.h>

#define EXPORT __attribute__((visibility("default")))

enum kind { NONE = -1, OPENMPI, MPICH, ABI, KINDS };

static const char *const shims[KINDS] = {"openmpi", "mpich", "abi"};
static const char *const called[KINDS] = {
    "Open MPI", "MPICH or a library with its binary interface (Intel MPI, MVAPICH, Cray MPICH)",
    "MPI 5's standard ABI"};

static enum kind cluster = NONE;   /* the library of the cluster */
static char shim[KINDS][PATH_MAX]; /* MMPI's libraries */
/* The MPI library that MMPI's library needs, or "" if the loader chooses it. */
static char below[KINDS][PATH_MAX];
static const struct link_map *program_itself; /* the first object */

static const char *base(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Whether a file name is that of a library, with a version or without. */
static int is(const char *name, const char *library) {
  size_t n = strlen(library);
  return !strncmp(name, library, n) && (!name[n] || name[n] == '.');
}

static enum kind by_name(const char *name) {
  if (is(name, "libmpi_abi.so")) return ABI;
  if (is(name, "libmpi.so.40") || is(name, "libmpi.so.20")) return OPENMPI;
  if (is(name, "libmpi.so.12") || is(name, "libmpich.so")) return MPICH;
  return NONE;
}

/* Returns the MPI library that a name stands for which is needed or opened. file is its path, if
 * known. A name without a version is a link to one with a version. */
static enum kind meant(const char *name, const char *file) {
  enum kind k = by_name(base(name));
  if (k != NONE || strcmp(base(name), "libmpi.so")) return k;
  char target[PATH_MAX];
  if (file && realpath(file, target) && (k = by_name(base(target))) != NONE) return k;
  return cluster;
}

/* ---- the loader's search for a library of an object, in the paths that MMPI's library does not
 * have */

static const char *dynamic(const struct link_map *l, int64_t tag) {
  const char *strings = NULL;
  uintptr_t offset = 0;
  for (const ElfW(Dyn) *d = l->l_ld; d && d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_STRTAB) strings = (const char *)d->d_un.d_ptr;
    if (d->d_tag == tag) offset = d->d_un.d_val;
  }
  if (!strings || !offset) return NULL;
  if ((uintptr_t)strings < l->l_addr) strings += l->l_addr; /* the address is not relocated */
  return strings + offset;
}

static void path_of(const struct link_map *l, char out[PATH_MAX]) {
  if (*l->l_name) {
    snprintf(out, PATH_MAX, "%s", l->l_name);
    return;
  }
  ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
  out[n > 0 ? n : 0] = 0;
}

/* Searches a list of directories, in which $ORIGIN is the object's directory. */
static int search(const char *list, const struct link_map *l, const char *name, char out[PATH_MAX]) {
  char origin[PATH_MAX];
  path_of(l, origin);
  origin[base(origin) - origin] = 0;
  for (; list && *list; list += strcspn(list, ":"), list += *list == ':') {
    size_t n = strcspn(list, ":"), skip = 0;
    if (!strncmp(list, "$ORIGIN", 7)) skip = 7;
    else if (!strncmp(list, "${ORIGIN}", 9)) skip = 9;
    if (n < skip || !n) continue;
    int wrote = snprintf(out, PATH_MAX, "%s%.*s/%s", skip ? origin : "", (int)(n - skip), list + skip, name);
    if (wrote < PATH_MAX && !access(out, R_OK)) return 1;
  }
  return 0;
}

static int find(const char *name, const struct link_map *l, char out[PATH_MAX]) {
  if (strchr(name, '/')) return snprintf(out, PATH_MAX, "%s", name) < PATH_MAX && !access(out, R_OK);
  if (!dynamic(l, DT_RUNPATH)) {
    if (search(dynamic(l, DT_RPATH), l, name, out)) return 1;
    if (program_itself && search(dynamic(program_itself, DT_RPATH), program_itself, name, out)) return 1;
  }
  return search(getenv("LD_LIBRARY_PATH"), l, name, out) || search(dynamic(l, DT_RUNPATH), l, name, out);
}

/* Returns the MPI library for a name that MMPI's library needs. */
static char *underneath(const char *name) {
  static char wanted[64];
  const char *dash = strstr(name, "-so.");
  if (strncmp(name, "libmpi", 6) || !dash || strlen(name) >= sizeof wanted) return (char *)name;
  strcpy(wanted, name);
  wanted[dash - name] = '.';
  enum kind k = by_name(wanted);
  return k != NONE && *below[k] ? below[k] : wanted;
}

/* ---- the functions that the loader calls */

EXPORT unsigned la_version(unsigned offered) {
  const char *job = getenv("ZIPPER_JOB"), *mpi = getenv("ZIPPER_MPI"), *abi = getenv("ZIPPER_ABI_LIBRARY");
  Dl_info self;
  if (!job || !*job || !mpi || !dladdr((void *)la_version, &self) || !self.dli_fname) return 0;
  for (int k = 0; k < KINDS; k++) {
    if (!strcmp(mpi, shims[k])) cluster = k;
    snprintf(shim[k], PATH_MAX, "%.*slibmmpi-%s-opened.so", (int)(base(self.dli_fname) - self.dli_fname),
             self.dli_fname, shims[k]);
  }
  if (abi) snprintf(below[ABI], PATH_MAX, "%s", abi);
  if (cluster == NONE) return 0;
  return offered < LAV_CURRENT ? offered : LAV_CURRENT;
}

EXPORT unsigned la_objopen(struct link_map *l, Lmid_t space, uintptr_t *cookie) {
  (void)space;
  if (!program_itself) program_itself = l;
  *cookie = (uintptr_t)l;
  return 0; /* calls of the object are not audited, so they are not slower */
}

EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag) {
  const struct link_map *l = (const struct link_map *)*cookie;
  if (flag != LA_SER_ORIG || !l || !l->l_name) return (char *)name;
  char file[PATH_MAX];
  if (!strncmp(base(l->l_name), "libmmpi-", 8)) return underneath(name);
  if (by_name(base(name)) == NONE && strcmp(base(name), "libmpi.so")) return (char *)name;
  int found = find(name, l, file);
  if (strchr(name, '/') && !found) return (char *)name; /* the loader reports the error */
  enum kind k = meant(name, found ? file : NULL);
  if (k == ABI || k == cluster) {
    if (access(shim[k], R_OK)) {
      fprintf(stderr,
              "MMPI: %s is not there: install the MPI library with its development files and run scripts/build\n",
              shim[k]);
      return NULL;
    }
    if (found && !*below[k] && strcmp(base(name), "libmpi.so")) snprintf(below[k], PATH_MAX, "%s", file);
    return shim[k];
  }
  path_of(l, file);
  fprintf(
      stderr,
      "MMPI: %s is linked to, or opens, %s of %s, but cluster %s runs %s: give the cluster a build for its library, or "
      "have it run the other one (mpi=%s)\n",
      file, name, called[k], getenv("ZIPPER_CLUSTER") ? getenv("ZIPPER_CLUSTER") : "?",
      cluster == MPICH ? "MPICH" : "Open MPI", shims[k]);
  return NULL;
}

/* Whether the user declares that all clusters share a path's file system: for a file (info key
 * zipper_shared), or for directories (ZIPPER_SHARED_FS). */
#include "io/file.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char zfile_shared_key[] = "zipper_shared";
static const char variable[] = "ZIPPER_SHARED_FS";

void zfile_check_variable(void) {
  const char *directories = getenv(variable);
  for (const char *d = directories ? directories : ""; *d; d += strcspn(d, ":"), d += *d == ':')
    if (*d != '/' && *d != ':') {
      fprintf(stderr, "MMPI: %s=%s: want whole paths from / on, separated by colons, as in /scratch:/home\n", variable,
              directories);
      return;
    }
}

/* Returns whether path, which has no symbolic links in it, is one of the colon-separated
 * directories or below one. */
static int below(const char *path, const char *directories) {
  char one[PATH_MAX], directory[PATH_MAX];
  for (const char *d = directories; *d; d += strcspn(d, ":"), d += *d == ':') {
    int n = snprintf(one, sizeof one, "%.*s", (int)strcspn(d, ":"), d);
    if (n < 1 || n >= (int)sizeof one || !realpath(one, directory)) continue;
    size_t length = strlen(directory);
    if (!strncmp(path, directory, length) && (path[length] == '/' || path[length] == 0 || directory[length - 1] == '/'))
      return 1;
  }
  return 0;
}

const char *zfile_path(const char *name) {
  const char *colon = strchr(name, ':');
  return colon && !memchr(name, '/', (size_t)(colon - name)) ? colon + 1 : name;
}

/* Writes to out, of PATH_MAX bytes, the path without links and dots of the directory of the file
 * `name`, or of the longest part of that directory's path that exists. *missing is 1 if something
 * on the path does not exist, otherwise 0. Returns 1, or 0 if no directory was found. */
static int directory_of(const char *name, char *out, int32_t *missing) {
  char copy[PATH_MAX];
  if (snprintf(copy, sizeof copy, "%s", zfile_path(name)) >= (int)sizeof copy) return 0;
  for (*missing = 0;; *missing |= errno == ENOENT) {
    char *slash = strrchr(copy, '/');
    if (!slash) return realpath(".", out) != NULL;
    slash[slash == copy] = 0;
    if (realpath(copy, out)) return 1;
    if ((errno != ENOENT && errno != ENOTDIR && errno != ELOOP) || slash == copy) return 0;
  }
}

int zfile_declared(const char *name, MPI_Info info, int32_t *missing) {
  char text[MPI_MAX_INFO_VAL + 1] = "", directory[PATH_MAX];
  int flag = 0, found = directory_of(name, directory, missing);
  if (info != MPI_INFO_NULL && real.Info_get(info, zfile_shared_key, sizeof text - 1, text, &flag)) flag = 0;
  if (flag) return !strcmp(text, "true");
  const char *directories = getenv(variable);
  return directories && found && below(directory, directories);
}

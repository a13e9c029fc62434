/* Removes the job's secret from the environment once it has been read: from the variables that the
 * program and its children see, and from the memory that /proc/PID/environ shows. A copy that the
 * program itself has made before remains. */
#include "native.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void wipe(char *entry, const char *name) {
  size_t n = strlen(name);
  if (strncmp(entry, name, n) || entry[n] != '=') return;
  volatile char *p = entry + n + 1;
  while (*p) *p++ = 0;
}

/* Sets *begin and *end to the addresses of the block of the environment that the kernel made at the
 * start of the process. Returns 1, or 0 if the kernel does not report it. */
static int block(char **begin, char **end) {
  char line[1024];
  int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, line, sizeof line - 1);
  close(fd);
  if (n <= 0) return 0;
  line[n] = 0;
  char *p = strrchr(line, ')'); /* the second field is a name, which may contain any character */
  if (!p) return 0;
  unsigned long value[2] = {0, 0};
  int field = 2; /* proc(5) counts from 1: fields 50 and 51 */
  for (p++; *p && field < 51; field++) {
    char *next;
    while (*p == ' ') p++;
    unsigned long v = strtoul(p, &next, 10);
    if (field + 1 >= 50) value[field + 1 - 50] = v;
    p = next;
    while (*p && *p != ' ') p++; /* the state is a letter */
  }
  *begin = (char *)value[0]; /* NOLINT: the kernel has reported the address */
  *end = (char *)value[1];
  return field == 51 && value[0] && value[0] < value[1];
}

void zn_forget(const char *name) {
  for (char **e = environ; e && *e; e++) wipe(*e, name);
  char *p, *end;
  if (block(&p, &end))
    for (; p < end; p += strnlen(p, (size_t)(end - p)) + 1) wipe(p, name);
  unsetenv(name);
}

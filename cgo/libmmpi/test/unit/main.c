/* Runs the tests, or those whose "thing name" contains the argument. The output is TAP: a plan (at
 * the end if there is an argument), and a line for each test, preceded by comments that name the
 * place if the test failed, or the reason if it was skipped. */
#include "test.h"
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 60 }; /* seconds of real time; with the fake clock a test takes milliseconds */

static test *tests, **last = &tests;

void test_add(test *t) {
  *last = t;
  last = &t->next;
}

void test_fail(const char *file, int line, const char *format, ...) {
  va_list list;
  printf("# %s:%d: ", file, line);
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  putchar('\n');
  fflush(stdout);
  _exit(1); /* without the leak check, whose report would hide the reason */
}

/* Sets *name to "wintype" for …/wintype_test.c, and returns its length. */
static int thing(const char *file, const char **name) {
  const char *slash = strrchr(file, '/');
  *name = slash ? slash + 1 : file;
  return (int)strcspn(*name, "_.");
}

enum { SKIPPED = 77 }; /* the exit status of a test that test_skip has ended */

void test_skip(const char *reason) {
  printf("# %s\n", reason);
  fflush(stdout);
  _exit(SKIPPED);
}

/* Runs a test in a child process. Returns 0 if it has passed, SKIPPED, or another number. */
static int run(const test *t) {
  pid_t child = fork();
  if (child < 0) test_fail(__FILE__, __LINE__, "no process can be made");
  if (!child) {
    alarm(LIMIT_S);
    fake_begin();
    t->run();
    fake_end();
    exit(0); /* with the leak check, and with the coverage written */
  }
  int status;
  if (waitpid(child, &status, 0) != child) test_fail(__FILE__, __LINE__, "the test's process is lost");
  if (WIFSIGNALED(status)) printf("# ended by signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv) {
  if (!getenv("ZIPPER_JOB")) { /* the units run as in a process of a job, from their first call on */
    setenv("ZIPPER_JOB", "units", 1);
    execv("/proc/self/exe", argv);
  }
  int n = 0, failed = 0;
  for (const test *t = tests; t; t = t->next) n++;
  if (argc < 2) printf("1..%d\n", n);
  n = 0;
  for (const test *t = tests; t; t = t->next) {
    char full[200];
    const char *file;
    int length = thing(t->file, &file);
    snprintf(full, sizeof full, "%.*s %s", length, file, t->name);
    if (argc > 1 && !strstr(full, argv[1])) continue;
    fflush(NULL);
    int result = run(t), ok = !result || result == SKIPPED;
    printf("%s %d - %s%s\n", ok ? "ok" : "not ok", ++n, full, result == SKIPPED ? " # SKIP" : "");
    failed += !ok;
  }
  if (argc > 1) printf("1..%d\n", n);
  return failed != 0;
}

/* A test is TEST(name) { ... } with CHECKs, in a file thing_test.c. Each test runs in a child
 * process of its own, so static variables of the units are fresh in each, and a crash ends one test
 * only. */
#ifndef ZIPPER_TEST_H
#define ZIPPER_TEST_H
#include "fake.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test {
  const char *file, *name;
  void (*run)(void);
  struct test *next;
} test;

void test_add(test *t);

#define TEST(NAME)                                            \
  static void NAME(void);                                     \
  __attribute__((constructor)) static void add_##NAME(void) { \
    static test t = {__FILE__, #NAME, NAME, NULL};            \
    test_add(&t);                                             \
  }                                                           \
  static void NAME(void)

/* Ends the test if the condition does not hold. */
#define CHECK(CONDITION) ((CONDITION) ? (void)0 : test_fail(__FILE__, __LINE__, "%s", #CONDITION))

#define SAME(GOT, WANT)                                                                           \
  do {                                                                                            \
    long long got_ = (long long)(GOT), want_ = (long long)(WANT);                                 \
    if (got_ != want_) test_fail(__FILE__, __LINE__, "%s is %lld, want %lld", #GOT, got_, want_); \
  } while (0)

/* Ends the test, which is reported as skipped for a reason. */
void test_skip(const char *reason) __attribute__((noreturn));

/* Ends the test under user emulation (ZIPPER_EMULATED), which lacks a function of the kernel. */
#define NEEDS_KERNEL(FUNCTION) (getenv("ZIPPER_EMULATED") ? test_skip("user emulation lacks " FUNCTION) : (void)0)

/* Ends the test on processors on which a signal handler is not recognized inside the engine and
 * cannot leave it. */
#ifdef __x86_64__
#define NEEDS_RESUME ((void)0)
#else
#define NEEDS_RESUME \
  test_skip("only on x86-64 handlers are recognized inside the engine, and can leave it (entry/resume.c)")
#endif

#define COUNT(ARRAY) ((int)(sizeof(ARRAY) / sizeof *(ARRAY)))
#endif

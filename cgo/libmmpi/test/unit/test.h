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

#define COUNT(ARRAY) ((int)(sizeof(ARRAY) / sizeof *(ARRAY)))
#endif

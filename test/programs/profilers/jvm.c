/* A Java virtual machine in the process, profiled by signals, as asynchronous profilers do: a
 * handler without SA_ONSTACK asks it for the Java stack of the thread that it has interrupted. The
 * signals of Java itself work meanwhile: methods that recurse without end throw StackOverflowError.
 *
 *   jvm ROUNDS MICROSECONDS */
#define _GNU_SOURCE
#include "../c/check.h"
#include <dlfcn.h>
#include <jni.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

enum { DEPTH = 512, LETTERS = 200000 };

/* The types of AsyncGetCallTrace, which no header declares. */
typedef struct {
  jint line;
  jmethodID method;
} frame;
typedef struct {
  JNIEnv *env;
  jint count;
  frame *frames;
} trace;
static void (*get_trace)(trace *, jint depth, void *context);

static JNIEnv *env;
static volatile sig_atomic_t samples;
static int rounds, us;

static void sample(int number, siginfo_t *info, void *context) {
  frame frames[DEPTH];
  trace t = {.env = env, .frames = frames};
  (void)number, (void)info;
  get_trace(&t, DEPTH, context);
  samples++;
}

static void begin(void) {
  JavaVMOption options[] = {{.optionString = "-Xmx64m"}};
  JavaVMInitArgs args = {.version = JNI_VERSION_10, .nOptions = 1, .options = options};
  JavaVM *vm;
  if (JNI_CreateJavaVM(&vm, (void **)&env, &args)) exit(3);
  get_trace = (void (*)(trace *, jint, void *))dlsym(RTLD_DEFAULT, "AsyncGetCallTrace");
  if (!get_trace) exit(4);
  struct sigaction act = {.sa_sigaction = sample, .sa_flags = SA_RESTART | SA_SIGINFO};
  struct itimerval often = {{0, us}, {0, us}};
  sigaction(SIGPROF, &act, NULL);
  setitimer(ITIMER_PROF, &often, NULL);
}

/* Computes in Java 3 to the power of n, and counts its bits. */
static int compute(int n) {
  jclass big = (*env)->FindClass(env, "java/math/BigInteger");
  jmethodID of = (*env)->GetStaticMethodID(env, big, "valueOf", "(J)Ljava/math/BigInteger;");
  jmethodID pow = (*env)->GetMethodID(env, big, "pow", "(I)Ljava/math/BigInteger;");
  jmethodID bits = (*env)->GetMethodID(env, big, "bitLength", "()I");
  jobject three = (*env)->CallStaticObjectMethod(env, big, of, (jlong)3);
  jobject power = (*env)->CallObjectMethod(env, three, pow, n);
  int length = (*env)->CallIntMethod(env, power, bits);
  CHECK(!(*env)->ExceptionCheck(env), "an exception");
  return length;
}

/* Lets java.util.regex recurse until the stack is used up. */
static void overflow(void) {
  static char letters[LETTERS + 1];
  memset(letters, 'a', LETTERS);
  jclass pattern = (*env)->FindClass(env, "java/util/regex/Pattern");
  jclass expected = (*env)->FindClass(env, "java/lang/StackOverflowError");
  jmethodID matches =
      (*env)->GetStaticMethodID(env, pattern, "matches", "(Ljava/lang/String;Ljava/lang/CharSequence;)Z");
  jstring expression = (*env)->NewStringUTF(env, "(a|b)*"), text = (*env)->NewStringUTF(env, letters);
  (*env)->CallStaticBooleanMethod(env, pattern, matches, expression, text);
  jthrowable thrown = (*env)->ExceptionOccurred(env);
  (*env)->ExceptionClear(env);
  CHECK(thrown && (*env)->IsInstanceOf(env, thrown, expected), "no StackOverflowError");
}

static void collect_garbage(void) {
  jclass system = (*env)->FindClass(env, "java/lang/System");
  (*env)->CallStaticVoidMethod(env, system, (*env)->GetStaticMethodID(env, system, "gc", "()V"));
}

static void *run(void *unused) {
  begin();
  for (int i = 0; i < rounds; i++) {
    (*env)->PushLocalFrame(env, 32);
    int mine = compute(1000 + i % 1000 + me), left = 0, most = 0;
    MPI_Sendrecv(&mine, 1, MPI_INT, (me + 1) % np, 0, &left, 1, MPI_INT, (me + np - 1) % np, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    SAME(left, compute(1000 + i % 1000 + (me + np - 1) % np), "the left one's length");
    MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    SAME(most, compute(1000 + i % 1000 + np - 1), "the greatest length");
    if (i % 50 == 0) overflow();
    if (i % 100 == 0) collect_garbage();
    (*env)->PopLocalFrame(env, NULL);
  }
  while (!samples) compute(100);
  setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
  return unused;
}

int main(int argc, char **argv) {
  pthread_t thread; /* as in java(1), because Java does not know the bounds of a main thread's stack */
  int level;
  if (argc < 3) return 2;
  rounds = atoi(argv[1]), us = atoi(argv[2]);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  pthread_create(&thread, NULL, run, NULL);
  pthread_join(thread, NULL);
  line("%d rounds", rounds);
  return finish();
}

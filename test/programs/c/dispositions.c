/* Prints the signals that the program was started to ignore or to block. Those that launchers set
 * by themselves are left out. */
#include "check.h"
#include <signal.h>

int main(int argc, char **argv) {
  static const int asked[] = {SIGWINCH, SIGIO, SIGVTALRM, SIGXFSZ};
  sigset_t mask;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
    struct sigaction was;
    sigaction(asked[i], NULL, &was);
    line("signal %d is %s and %s", asked[i], was.sa_handler == SIG_IGN ? "ignored" : "not ignored",
         sigismember(&mask, asked[i]) ? "blocked" : "open");
  }
  start(&argc, &argv);
  return finish();
}

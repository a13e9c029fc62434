/* A program without MPI that opens a plug-in which uses MPI, and closes it between rounds of
 * communication and after MPI_Finalize.
 *
 *   plugin_host PLUGIN */
#include <dlfcn.h>
#include <stdio.h>

enum { ROUNDS = 20 };

int main(int argc, char **argv) {
  int right = argc == 2;
  for (int i = 0; right && i < ROUNDS; i++) {
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*take_part)(int, int) = plugin ? (int (*)(int, int))dlsym(plugin, "take_part") : NULL;
    if (!take_part) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    right = take_part(i, i == ROUNDS - 1);
    if (dlclose(plugin)) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
  }
  return !right;
}

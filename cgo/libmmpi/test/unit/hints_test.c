/* Names of hosts in hints (io/hints.c), in cluster c0 of c0, c1 and c2. */
#include "io/hints.h"
#include "test.h"
#include <string.h>

static void is(const char *list, const char *own, const char *want) {
  char got[200];
  FAKE_WORLD(0, 1, 1, 1);
  zhosts_native(list, own, got, sizeof got);
  if (strcmp(got, want)) printf("%s becomes %s, want %s\n", list, got, want);
  CHECK(!strcmp(got, want));
}

TEST(a_host_of_this_cluster_has_its_native_name) { is("node1.c0", "node1", "node1"); }

TEST(what_follows_the_colon_stays) { is("node1.c0:2,*:1", "node1", "node1:2,*:1"); }

TEST(a_host_of_another_cluster_is_left_out) { is("node1.c0:1,node1.c1:1,node2.c2", "node1", "node1:1"); }

TEST(a_list_of_other_clusters_is_empty) { is("node1.c1:1,node2.c2:1", "node1", ""); }

TEST(other_names_stay) { is("node1,node2.example.org:2,*", "node1", "node1,node2.example.org:2,*"); }

TEST(a_library_whose_names_end_so_keeps_them) { is("node1.c0,node2.c0", "node1.c0", "node1.c0,node2.c0"); }

/* Space is preallocated for several files, each of them new: every rank gets the same result. The
 * argument is a directory that all clusters share. */
#include "check.h"

static MPI_File opened(const char *path, int amode) {
  MPI_File f = MPI_FILE_NULL;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "zipper_shared", "true");
  SAME(MPI_File_open(MPI_COMM_WORLD, path, amode, info, &f), MPI_SUCCESS, "open");
  MPI_Info_free(&info);
  return f;
}

static int class_of(int rc) {
  int found = rc;
  if (rc) MPI_Error_class(rc, &found);
  return found;
}

static void grows(MPI_File f, MPI_Offset to, MPI_Offset want) {
  MPI_Offset size = -1;
  SAME(class_of(MPI_File_preallocate(f, to)), MPI_SUCCESS, "preallocate");
  MPI_File_get_size(f, &size);
  SAME(size, want, "size");
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  enum { FILES = 10, FEW = 1000, MORE = 100000 };
  char path[1000], text[FEW], back[FEW];
  MPI_File f;
  start(&argc, &argv);
  snprintf(path, sizeof path, "%s/file", argv[1]);
  memset(text, 'x', sizeof text);
  for (int i = 0; i < FILES; i++) {
    f = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    grows(f, FEW, FEW);
    grows(f, FEW, FEW);
    if (me == 0) MPI_File_write_at(f, 0, text, FEW, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_sync(f);
    grows(f, MORE, MORE);
    grows(f, FEW, MORE); /* a file is not made shorter */
    memset(back, 0, sizeof back);
    MPI_File_read_at(f, 0, back, FEW, MPI_CHAR, MPI_STATUS_IGNORE);
    SAME(memcmp(back, text, FEW), 0, "content");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_close(&f);
  }
  f = opened(path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  MPI_File_close(&f);
  f = opened(path, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
  SAME(class_of(MPI_File_preallocate(f, FEW)), MPI_ERR_READ_ONLY, "class of a file that may only be read");
  SAME(class_of(MPI_File_preallocate(f, -1)), MPI_ERR_ARG, "class for a negative size");
  MPI_File_close(&f);
  return finish();
}

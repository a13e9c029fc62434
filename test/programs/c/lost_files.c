/* A file that clusters share, while one of them is lost: collective calls fail, and closing
 * works. */
#include "lost.h"

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  const char *path = argc > 3 ? argv[3] : "lost_files.out";
  MPI_File file;
  MPI_Info info;
  int rc = MPI_SUCCESS, size;
  MPI_Info_create(&info);
  MPI_Info_set(info, "zipper_shared", "true");
  CLASS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), MPI_SUCCESS);
  for (int n = 0; !rc; n++) {
    if (n == 5) perish();
    rc = MPI_File_write_at_all(file, me * (int)sizeof n, &n, 1, MPI_INT, MPI_STATUS_IGNORE);
  }
  CLASS(rc, MPIX_ERR_PROC_FAILED);
  CLASS(MPI_File_sync(file), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_File_close(&file), MPI_SUCCESS);
  CLASS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, &file), MPIX_ERR_PROC_FAILED);
  MPI_Comm alive;
  CLASS(MPIX_Comm_shrink(MPI_COMM_WORLD, &alive), MPI_SUCCESS);
  MPI_Comm_size(alive, &size);
  SAME(size, np - victims, "survivors");
  CLASS(MPI_File_open(alive, path, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file), MPI_SUCCESS);
  CLASS(MPI_File_write_at_all(file, me * (int)sizeof me, &me, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CLASS(MPI_File_close(&file), MPI_SUCCESS);
  MPI_Info_free(&info);
  return finish_lost(alive);
}

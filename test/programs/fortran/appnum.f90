! MPI_APPNUM in Fortran: the argument is the number that this program must have, -1 for none.
program appnum
  use mpi
  implicit none
  integer :: ierr, want, mine
  integer(kind=mpi_address_kind) :: number
  logical :: there
  character(len=16) :: word
  call mpi_init(ierr)
  call get_command_argument(1, word)
  read (word, *) want
  call mpi_comm_get_attr(mpi_comm_world, mpi_appnum, number, there, ierr)
  mine = -1
  if (there) mine = int(number)
  if (mine /= want) then
    write (0, *) 'MPI_APPNUM is ', mine, ', want ', want
    call mpi_abort(mpi_comm_world, 1, ierr)
  end if
  call mpi_finalize(ierr)
end program appnum

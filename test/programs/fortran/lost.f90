! The Fortran functions for failed processes: the last rank ends by SIGKILL, and the others shrink
! MPI_COMM_WORLD. Rank 0 prints how many ranks go on. A line with "wrong" is an error.
program lost
  ! The functions must not come from the module, because that of MPICH 4.2 has some of these, with a
  ! logical flag.
  use mpi, only: MPI_COMM_WORLD, MPI_ERRORS_RETURN, MPI_STATUS_IGNORE, MPI_SUCCESS
  use iso_c_binding
  implicit none
  external mpix_comm_revoke, mpix_comm_is_revoked, mpix_comm_get_failed, mpix_comm_ack_failed
  external mpix_comm_agree, mpix_comm_iagree, mpix_comm_shrink, mpix_comm_failure_ack
  external mpi_comm_ishrink
  interface
    integer(c_int) function raise(signal) bind(c)
      import c_int
      integer(c_int), value :: signal
    end function
  end interface
  integer :: rank, size, ierr, group, n, flag, request, alive, gone
  logical :: revoked
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (rank == size - 1) ierr = raise(9_c_int)
  n = 0
  do while (n == 0)
    call mpix_comm_get_failed(MPI_COMM_WORLD, group, ierr)
    call MPI_Group_size(group, n, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, gone)
  end do
  if (gone == MPI_SUCCESS) print *, 'wrong: a barrier with a lost process succeeds'
  call mpix_comm_failure_ack(MPI_COMM_WORLD, ierr)
  call mpix_comm_ack_failed(MPI_COMM_WORLD, n, n, ierr)
  if (n /= 1 .or. ierr /= MPI_SUCCESS) print *, 'wrong: acknowledged:', n, ierr
  flag = 5
  call mpix_comm_agree(MPI_COMM_WORLD, flag, ierr)
  if (flag /= 5 .or. ierr /= MPI_SUCCESS) print *, 'wrong: agreed:', flag, ierr
  call mpix_comm_iagree(MPI_COMM_WORLD, flag, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  if (flag /= 5 .or. ierr /= MPI_SUCCESS) print *, 'wrong: agreed:', flag, ierr
  call mpix_comm_revoke(MPI_COMM_WORLD, ierr)
  call mpix_comm_is_revoked(MPI_COMM_WORLD, revoked, ierr)
  if (.not. revoked) print *, 'wrong: not revoked'
  call mpi_comm_ishrink(MPI_COMM_WORLD, alive, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Comm_size(alive, n, ierr)
  call mpix_comm_shrink(MPI_COMM_WORLD, alive, ierr)
  call MPI_Comm_rank(alive, rank, ierr)
  call MPI_Comm_size(alive, size, ierr)
  if (n /= size) print *, 'wrong: ishrink:', n, ierr
  call MPI_Barrier(alive, ierr)
  if (rank == 0) print '(i0,a)', size, ' ranks go on'
  call MPI_Finalize(ierr)
end program

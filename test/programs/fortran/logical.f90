! Logical values, and REAL(16) where the library has a type for it: between clusters, whose
! processors and compilers may differ, they keep their values in messages and reductions.
program logical_values
  implicit none
  include 'mpif.h'
  integer, parameter :: n = 9
  integer :: ierr, me, np, i, root, left, right, status(MPI_STATUS_SIZE)
  logical :: out(n), in(n), every(n), any_of(n)
  real(kind=16) :: q(n)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  right = mod(me + 1, np)
  left = mod(me + np - 1, np)
  do i = 1, n
    out(i) = truth(me, i)
  end do
  call MPI_Sendrecv(out, n, MPI_LOGICAL, right, 1, in, n, MPI_LOGICAL, left, 1, MPI_COMM_WORLD, status, ierr)
  do i = 1, n
    if (in(i) .neqv. truth(left, i)) call bad('a logical value', i)
    ! the bits, too, are those of this program's compiler
    if (transfer(in(i), 0) /= transfer(truth(left, i), 0)) call bad('the bits of a logical value', i)
  end do
  call MPI_Allreduce(out, every, n, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  call MPI_Allreduce(out, any_of, n, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
  do i = 1, n
    if (every(i) .neqv. all([(truth(root, i), root = 0, np - 1)])) call bad('MPI_LAND', i)
    if (any_of(i) .neqv. any([(truth(root, i), root = 0, np - 1)])) call bad('MPI_LOR', i)
  end do
  do root = 0, np - 1
    if (MPI_REAL16 == MPI_DATATYPE_NULL) exit
    do i = 1, n
      q(i) = third(me, i)
    end do
    call MPI_Bcast(q, n, MPI_REAL16, root, MPI_COMM_WORLD, ierr)
    do i = 1, n
      if (q(i) /= third(root, i)) call bad('a value of MPI_REAL16', i)
    end do
  end do
  if (me == 0) print '(a)', 'logical values have arrived'
  call MPI_Finalize(ierr)
contains
  logical function truth(rank, i)
    integer, intent(in) :: rank, i
    truth = i > 1 .and. (i > n - 1 .or. mod(rank + i, 3) == 0)
  end function

  real(kind=16) function third(rank, i)
    integer, intent(in) :: rank, i
    third = real(rank + i, 16) / 3
  end function

  subroutine bad(what, i)
    character(*), intent(in) :: what
    integer, intent(in) :: i
    write (0, '(a,i0,a,a,i0)') 'rank ', me, ': wrong: ', what, i
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine
end program

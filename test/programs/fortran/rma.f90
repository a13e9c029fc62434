! One-sided communication from Fortran (mpi_f08): fence, lock, accumulate, post-start-complete-wait, fetch and op.
program rma
  use mpi_f08
  implicit none
  integer, parameter :: n = 10
  integer :: me, np, i, right, left, ierr
  integer(MPI_ADDRESS_KIND) :: bytes, disp, known
  logical :: there
  integer, asynchronous :: mine(n), out(n), one, ticket
  type(MPI_Win) :: win
  type(MPI_Group) :: all, around
  integer :: neighbours(2)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, np)
  right = mod(me + 1, np)
  left = mod(me + np - 1, np)
  bytes = n * 4
  mine = 0
  call MPI_Win_create(mine, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, known, there)
  if (.not. there .or. known /= bytes) call fail("size")
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, known, there)
  if (.not. there .or. known /= 4) call fail("unit of displacements")
  call MPI_Win_get_attr(win, MPI_WIN_BASE, known, there)
  call MPI_Get_address(mine, disp)
  if (.not. there .or. known /= disp) call fail("base")
  call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, known, there)
  if (.not. there .or. known /= MPI_WIN_FLAVOR_CREATE) call fail("flavor")

  call MPI_Win_fence(0, win)
  out = [(100 * me + i, i = 1, n)]
  disp = 0
  call MPI_Put(out, n, MPI_INTEGER, right, disp, n, MPI_INTEGER, win)
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, win)
  if (any(mine /= [(100 * left + i, i = 1, n)])) call fail("put")

  call MPI_Barrier(MPI_COMM_WORLD)
  do i = 0, np - 1
    call MPI_Win_lock(MPI_LOCK_SHARED, i, 0, win)
    call MPI_Accumulate(out, n, MPI_INTEGER, i, disp, n, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_unlock(i, win)
  end do
  call MPI_Barrier(MPI_COMM_WORLD)
  if (any(mine /= [(100 * left + i + np * i + 50 * np * (np - 1), i = 1, n)])) call fail("accumulate")
  call MPI_Barrier(MPI_COMM_WORLD)

  call MPI_Comm_group(MPI_COMM_WORLD, all)
  neighbours = [left, right]
  call MPI_Group_incl(all, merge(1, 2, np == 2), neighbours, around)
  call MPI_Win_post(around, 0, win)
  call MPI_Win_start(around, 0, win)
  call MPI_Put(me, 1, MPI_INTEGER, right, disp, 1, MPI_INTEGER, win)
  call MPI_Win_complete(win)
  call MPI_Win_wait(win)
  if (mine(1) /= left) call fail("post-start-complete-wait")
  call MPI_Group_free(all)
  call MPI_Group_free(around)

  mine(2) = 0
  one = 1
  disp = 1
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Win_lock_all(0, win)
  call MPI_Fetch_and_op(one, ticket, MPI_INTEGER, 0, disp, MPI_SUM, win)
  call MPI_Win_flush(0, win)
  call MPI_Win_unlock_all(win)
  if (ticket < 0 .or. ticket >= np) call fail("ticket")
  call MPI_Barrier(MPI_COMM_WORLD)
  if (me == 0 .and. mine(2) /= np) call fail("counter")
  call MPI_Win_free(win)
  if (me == 0) print '(a)', "ok"
  call MPI_Finalize()
contains
  subroutine fail(what)
    character(*), intent(in) :: what
    print '(a,i0,2a)', "rank ", me, ": wrong: ", what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program

! Heat flow along a rod with ends at fixed temperatures, each process holding a piece and trading one
! cell with its neighbours per step. The temperature must become the straight line between the two
! ends.
!
!   zipper fc -O2 -o heat examples/heat/heat.f90 && zipper run --cluster a=2 --cluster b=2 -- ./heat
program heat
  use mpi_f08
  implicit none
  integer, parameter :: cells = 24
  integer :: rank, size, left, right, first, mine, i, step
  real(8), allocatable :: t(:), next(:)
  real(8) :: change, wrong, most

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < size - 1)
  first = rank * cells / size
  mine = (rank + 1) * cells / size - first
  allocate(t(0:mine + 1), next(0:mine + 1))
  t = 0
  if (rank == size - 1) t(mine + 1) = 100

  do step = 1, 100000
    call MPI_Sendrecv(t(1), 1, MPI_REAL8, left, 0, t(mine + 1), 1, MPI_REAL8, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(t(mine), 1, MPI_REAL8, right, 1, t(0), 1, MPI_REAL8, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    do i = 1, mine
      next(i) = (t(i - 1) + t(i + 1)) / 2
    end do
    change = maxval(abs(next(1:mine) - t(1:mine)))
    t(1:mine) = next(1:mine)
    if (mod(step, 50) == 0) then
      call MPI_Allreduce(change, most, 1, MPI_REAL8, MPI_MAX, MPI_COMM_WORLD)
      if (most < 1d-9) exit
    end if
  end do

  change = 0
  do i = 1, mine
    change = max(change, abs(t(i) - 100d0 * (first + i) / (cells + 1)))
  end do
  call MPI_Reduce(change, wrong, 1, MPI_REAL8, MPI_MAX, 0, MPI_COMM_WORLD)
  if (rank == 0) then
    if (wrong > 1d-5) then
      print '(a, es9.2)', 'not a straight line: off by ', wrong
      call MPI_Abort(MPI_COMM_WORLD, 1)
    end if
    print '(a, i0, a, i0, a)', 'after ', step, ' steps on ', size, ' processes the temperature is a straight line'
  end if
  call MPI_Finalize()
end program

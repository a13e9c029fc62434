! The module interface: use mpi. A one-dimensional heat equation with halo exchange (exact in binary), requests in arrays,
! wildcards, testsome, gatherv, scatterv, scan, attributes, an error handler that returns.
program usempi
  use mpi
  implicit none
  integer, parameter :: n = 64
  integer :: ierr, me, np, left, right, step, i, p, failures = 0, all_failures, code, class, outcount, done
  integer :: requests(4), statuses(MPI_STATUS_SIZE, 4), status(MPI_STATUS_SIZE), indices(4)
  integer, allocatable :: counts(:), displs(:), everything(:), mine(:)
  integer(kind=MPI_ADDRESS_KIND) :: tag_ub, lb, extent
  logical :: flag
  double precision :: u(0:n+1), v(n), total, energy
  integer :: t, dup, message

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierr)
  left = merge(MPI_PROC_NULL, me - 1, me == 0)
  right = merge(MPI_PROC_NULL, me + 1, me == np - 1)
  u = 0
  do i = 1, n
    u(i) = mod(me * n + i, 17) * 1024d0
  end do
  do step = 1, 20
    call MPI_Irecv(u(0), 1, MPI_DOUBLE_PRECISION, left, 1, dup, requests(1), ierr)
    call MPI_Irecv(u(n+1), 1, MPI_DOUBLE_PRECISION, right, 2, dup, requests(2), ierr)
    call MPI_Isend(u(1), 1, MPI_DOUBLE_PRECISION, left, 2, dup, requests(3), ierr)
    call MPI_Isend(u(n), 1, MPI_DOUBLE_PRECISION, right, 1, dup, requests(4), ierr)
    if (mod(step, 2) == 0) then
      call MPI_Waitall(4, requests, statuses, ierr)
    else
      done = 0
      do while (done < 4)
        call MPI_Testsome(4, requests, outcount, indices, statuses, ierr)
        done = done + outcount
      end do
    end if
    do i = 1, n
      v(i) = 0.25d0 * u(i-1) + 0.5d0 * u(i) + 0.25d0 * u(i+1)
    end do
    u(1:n) = v
  end do
  total = sum(u(1:n))
  call MPI_Allreduce(total, energy, 1, MPI_DOUBLE_PRECISION, MPI_SUM, dup, ierr)
  if (me == 0) print '(a,z17)', 'energy', transfer(energy, 1_8)

  ! rank p has p + 1 numbers
  allocate(counts(np), displs(np), mine(me + 1), everything(np * (np + 1)))
  do p = 1, np
    counts(p) = p
    displs(p) = p * (p - 1) / 2
  end do
  mine = [(100 * me + i, i = 0, me)]
  everything = -1
  call MPI_Allgatherv(mine, me + 1, MPI_INTEGER, everything, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  do p = 1, np
    do i = 0, p - 1
      if (everything(displs(p) + i + 1) /= 100 * (p - 1) + i) failures = failures + 1
    end do
  end do
  mine = 0
  call MPI_Scatterv(everything, counts, displs, MPI_INTEGER, mine, me + 1, MPI_INTEGER, np - 1, MPI_COMM_WORLD, ierr)
  if (any(mine /= [(100 * me + i, i = 0, me)])) failures = failures + 1
  call MPI_Scan(me, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (i /= me * (me + 1) / 2) failures = failures + 1

  ! wildcards: everybody to rank 0, messages in order
  if (me == 0) then
    counts = 0
    do i = 1, 10 * (np - 1)
      call MPI_Recv(message, 1, MPI_INTEGER, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, status, ierr)
      p = status(MPI_SOURCE)
      if (message /= counts(p + 1)) failures = failures + 1
      counts(p + 1) = counts(p + 1) + 1
    end do
  else
    do i = 0, 9
      call MPI_Send(i, 1, MPI_INTEGER, 0, 4, MPI_COMM_WORLD, ierr)
    end do
  end if

  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, tag_ub, flag, ierr)
  if (.not. flag .or. tag_ub < 32767) failures = failures + 1
  call MPI_Allreduce(tag_ub, lb, 1, MPI_AINT, MPI_MIN, MPI_COMM_WORLD, ierr)
  if (lb /= tag_ub) failures = failures + 1
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, i, flag, ierr)
  if (.not. flag .or. i /= tag_ub) failures = failures + 1
  call MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN, ierr)
  call MPI_Send(me, 1, MPI_INTEGER, np, 1, dup, code)
  call MPI_Error_class(code, class, ierr)
  if (class /= MPI_ERR_RANK) failures = failures + 1
  call MPI_Type_get_extent(MPI_DOUBLE_PRECISION, lb, extent, ierr)
  if (extent /= 8) failures = failures + 1
  call MPI_Type_contiguous(3, MPI_INTEGER, t, ierr)
  call MPI_Type_commit(t, ierr)
  call MPI_Bcast(everything, 1, t, 0, dup, ierr)
  call MPI_Type_free(t, ierr)
  call types_for_each(dup)
  call duplicate_later(dup)
  call MPI_Comm_free(dup, ierr)
  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (me == 0) print '(a,i4,a,i4)', 'ranks', np, ' failures', all_failures
  call MPI_Finalize(ierr)
  if (all_failures /= 0) stop 1
contains
  ! Every type counts, not only those of the ranks of this cluster.
  subroutine types_for_each(comm)
    integer, intent(in) :: comm
    integer, asynchronous :: out(0:np-1), in(0:np-1)
    integer :: counts(np), displs(np), k
    integer :: types(np)
    integer :: request
    out = [(100 * me + k, k = 0, np - 1)]
    counts = 1
    displs = [(4 * k, k = 0, np - 1)]
    types = MPI_INTEGER
    in = -1
    call MPI_Alltoallw(out, counts, displs, types, in, counts, displs, types, comm, ierr)
    if (any(in /= [(100 * k + me, k = 0, np - 1)])) failures = failures + 1
    call MPI_Ialltoallw(MPI_IN_PLACE, counts, displs, types, in, counts, displs, types, comm, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    if (any(in /= out)) failures = failures + 1
  end subroutine

  ! The duplicate exists when the request has completed.
  subroutine duplicate_later(comm)
    integer, intent(in) :: comm
    integer, asynchronous :: copies(2)
    integer :: requests(2), k, n
    do k = 1, 2
      call MPI_Comm_idup(comm, copies(k), requests(k), ierr)
    end do
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    do k = 1, 2
      call MPI_Allreduce(k, n, 1, MPI_INTEGER, MPI_SUM, copies(k), ierr)
      if (n /= k * np) failures = failures + 1
      call MPI_Comm_free(copies(k), ierr)
    end do
  end subroutine
end program

! The 2008 interface: use mpi_f08. Typed handles, statuses as types, optional ierror, nonblocking collectives, a user
! operator, matched probes, groups.
module operators
  use mpi_f08
  use iso_c_binding
  implicit none
contains
  subroutine compose(invec, inoutvec, n, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: n, i
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:,:), b(:,:)
    call c_f_pointer(invec, a, [2, n])
    call c_f_pointer(inoutvec, b, [2, n])
    do i = 1, n
      b(2, i) = mod(a(2, i) * b(1, i) + b(2, i), 10007)
      b(1, i) = mod(a(1, i) * b(1, i), 10007)
    end do
  end subroutine
end module

program f08
  use mpi_f08
  use operators
  implicit none
  integer :: me, np, left, right, i, p, n, failures = 0, all_failures, want(2), got(2), mine(2), rank, x, y, sums(4)
  integer, allocatable :: big(:), other(:), all(:)
  type(MPI_Status) :: status, statuses(8)
  type(MPI_Request) :: requests(8)
  type(MPI_Message) :: message
  type(MPI_Comm) :: comm, half
  type(MPI_Group) :: world, group
  type(MPI_Op) :: op
  type(MPI_Datatype) :: pair
  logical :: flag
  integer(MPI_ADDRESS_KIND) :: tag_ub, least

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, np)
  left = mod(me + np - 1, np)
  right = mod(me + 1, np)
  allocate(big(100000), other(100000), all(np))
  big = [(me * 7 + i, i = 1, size(big))]
  call MPI_Irecv(other, size(other), MPI_INTEGER, left, 1, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(big, size(big), MPI_INTEGER, right, 1, MPI_COMM_WORLD, requests(2))
  call MPI_Iallreduce(me, x, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(3))
  call MPI_Waitall(3, requests, statuses)
  if (any(other /= [(left * 7 + i, i = 1, size(other))])) failures = failures + 1
  if (statuses(1)%MPI_SOURCE /= left .or. statuses(1)%MPI_TAG /= 1) failures = failures + 1
  call MPI_Get_count(statuses(1), MPI_INTEGER, n)
  if (n /= size(other)) failures = failures + 1
  if (x /= np * (np - 1) / 2) failures = failures + 1

  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Isend(big, 500, MPI_INTEGER, right, 2, MPI_COMM_WORLD, requests(1))
  call MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, message, status)
  call MPI_Get_count(status, MPI_INTEGER, n)
  other = -1
  call MPI_Mrecv(other, n, MPI_INTEGER, message, status)
  if (n /= 500 .or. status%MPI_SOURCE /= left .or. other(500) /= left * 7 + 500 .or. other(501) /= -1) failures = failures + 1
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  flag = .false.
  call MPI_Irecv(x, 1, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, requests(1))
  call MPI_Ssend(me, 1, MPI_INTEGER, right, 3, MPI_COMM_WORLD)
  do while (.not. flag)
    call MPI_Test(requests(1), flag, status)
  end do
  if (x /= left .or. status%MPI_SOURCE /= left) failures = failures + 1

  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, tag_ub, flag)
  call MPI_Allreduce(tag_ub, least, 1, MPI_AINT, MPI_MIN, MPI_COMM_WORLD)
  if (.not. flag .or. tag_ub < 32767 .or. least /= tag_ub) failures = failures + 1

  call MPI_Op_create(compose, .false., op)
  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  mine = [me + 2, 2 * me + 1]
  want = [2, 1]
  do p = 1, np - 1
    want = [mod(want(1) * (p + 2), 10007), mod(want(2) * (p + 2) + 2 * p + 1, 10007)]
  end do
  call MPI_Allreduce(mine, got, 1, pair, op, MPI_COMM_WORLD)
  if (any(got /= want)) failures = failures + 1
  call MPI_Op_free(op)
  call MPI_Type_free(pair)

  call MPI_Comm_group(MPI_COMM_WORLD, world)
  call MPI_Group_incl(world, (np + 1) / 2, [(i, i = np - 1, 0, -2)], group)
  call MPI_Comm_create(MPI_COMM_WORLD, group, half)
  if (half /= MPI_COMM_NULL) then
    call MPI_Comm_rank(half, rank)
    if (rank /= (np - 1 - me) / 2) failures = failures + 1
    call MPI_Allreduce(1, n, 1, MPI_INTEGER, MPI_SUM, half)
    if (n /= (np + 1) / 2) failures = failures + 1
    call MPI_Comm_free(half)
  end if
  call MPI_Group_free(group)
  call MPI_Group_free(world)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -me, comm)
  call MPI_Allgather(me, 1, MPI_INTEGER, all, 1, MPI_INTEGER, comm)
  if (any(all /= [(i, i = np - 1, 0, -1)])) failures = failures + 1
  call MPI_Bcast(big, size(big), MPI_INTEGER, 0, comm)
  if (big(1) /= (np - 1) * 7 + 1) failures = failures + 1
  call MPI_Comm_free(comm)
  call MPI_Exscan(me + 1, y, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (me > 0 .and. y /= me * (me + 1) / 2) failures = failures + 1
  call types_for_each(MPI_COMM_WORLD)
  call duplicate_later(MPI_COMM_WORLD)
  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (me == 0) print '(a,i4,a,2i7,a,i4)', 'ranks', np, ' map', got, ' failures', all_failures
  call MPI_Finalize()
  if (all_failures /= 0) stop 1
contains
  ! Every type counts, not only those of the ranks of this cluster.
  subroutine types_for_each(comm)
    type(MPI_Comm), intent(in) :: comm
    integer, asynchronous :: out(0:np-1), in(0:np-1)
    integer :: counts(np), displs(np), k
    type(MPI_Datatype) :: types(np)
    type(MPI_Request) :: request
    out = [(100 * me + k, k = 0, np - 1)]
    counts = 1
    displs = [(4 * k, k = 0, np - 1)]
    types = MPI_INTEGER
    in = -1
    call MPI_Alltoallw(out, counts, displs, types, in, counts, displs, types, comm)
    if (any(in /= [(100 * k + me, k = 0, np - 1)])) failures = failures + 1
    call MPI_Ialltoallw(MPI_IN_PLACE, counts, displs, types, in, counts, displs, types, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(in /= out)) failures = failures + 1
  end subroutine

  ! The duplicate exists when the request has completed.
  subroutine duplicate_later(comm)
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Comm), asynchronous :: copies(2)
    type(MPI_Request) :: requests(2)
    integer :: k, n
    do k = 1, 2
      call MPI_Comm_idup(comm, copies(k), requests(k))
    end do
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    do k = 1, 2
      call MPI_Allreduce(k, n, 1, MPI_INTEGER, MPI_SUM, copies(k))
      if (n /= k * np) failures = failures + 1
      call MPI_Comm_free(copies(k))
    end do
  end subroutine
end program

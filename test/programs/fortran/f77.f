C     The classic interface: mpif.h. Point to point, wildcards, requests, types, collectives, a user operator, split, cart.
      PROGRAM F77
      INCLUDE 'mpif.h'
      INTEGER IERR, ME, NP, I, P, ROOT, RIGHT, LEFT, N, COUNT, TAG
      INTEGER ST(MPI_STATUS_SIZE), STS(MPI_STATUS_SIZE, 40)
C     in common: the compiler must not assume that only calls that name them change them
      INTEGER X(1000), Y(1000)
      COMMON X, Y
      INTEGER REQ(40), SUMS, WANT, HALF, HR, HN
      INTEGER COLUMN, OP, IN(2), OUT(2), NEWTYPE, FAILED, ALLFAIL, IDX
      DOUBLE PRECISION D(10,10), E(10,10), S, T
      LOGICAL FLAG
      EXTERNAL COMPOSE
      FAILED = 0
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, ME, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, NP, IERR)
      RIGHT = MOD(ME + 1, NP)
      LEFT = MOD(ME + NP - 1, NP)
C     a ring in three ways
      DO I = 1, 1000
         X(I) = ME * 1000 + I
         Y(I) = -1
      END DO
      CALL MPI_SENDRECV(X, 1000, MPI_INTEGER, RIGHT, 1, Y, 1000,
     &     MPI_INTEGER, LEFT, 1, MPI_COMM_WORLD, ST, IERR)
      CALL MPI_GET_COUNT(ST, MPI_INTEGER, COUNT, IERR)
      IF (COUNT .NE. 1000) FAILED = FAILED + 1
      IF (ST(MPI_SOURCE) .NE. LEFT) FAILED = FAILED + 1
      IF (ST(MPI_TAG) .NE. 1) FAILED = FAILED + 1
      IF (Y(1000) .NE. LEFT * 1000 + 1000) FAILED = FAILED + 1
      CALL MPI_IRECV(Y, 1000, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG,
     &     MPI_COMM_WORLD, REQ(1), IERR)
      CALL MPI_ISEND(X, 10, MPI_INTEGER, LEFT, 5, MPI_COMM_WORLD,
     &     REQ(2), IERR)
      CALL MPI_WAITALL(2, REQ, STS, IERR)
      IF (STS(MPI_SOURCE, 1) .NE. RIGHT) FAILED = FAILED + 1
      IF (Y(10) .NE. RIGHT * 1000 + 10) FAILED = FAILED + 1
      CALL MPI_BARRIER(MPI_COMM_WORLD, IERR)
      CALL MPI_SENDRECV_REPLACE(X, 1, MPI_INTEGER, RIGHT, 7, LEFT, 7,
     &     MPI_COMM_WORLD, MPI_STATUS_IGNORE, IERR)
      IF (X(1) .NE. LEFT * 1000 + 1) FAILED = FAILED + 1
C     everybody to everybody, completed one by one
      CALL MPI_BARRIER(MPI_COMM_WORLD, IERR)
      N = 0
      DO P = 0, NP - 1
         N = N + 1
         CALL MPI_IRECV(Y(P + 1), 1, MPI_INTEGER, P, 9, MPI_COMM_WORLD,
     &        REQ(N), IERR)
      END DO
      DO P = 0, NP - 1
         X(P + 1) = 100 * ME + P
         N = N + 1
         CALL MPI_ISSEND(X(P + 1), 1, MPI_INTEGER, P, 9,
     &        MPI_COMM_WORLD, REQ(N), IERR)
      END DO
      DO I = 1, N
         CALL MPI_WAITANY(N, REQ, IDX, ST, IERR)
         IF (IDX .LT. 1 .OR. IDX .GT. N) FAILED = FAILED + 1
      END DO
      CALL MPI_WAITANY(N, REQ, IDX, MPI_STATUS_IGNORE, IERR)
C     (MPICH 4.0 gives MPI_UNDEFINED + 1)
      IF (IDX .GE. 1 .AND. IDX .LE. N) FAILED = FAILED + 1
      DO P = 0, NP - 1
         IF (Y(P + 1) .NE. 100 * P + ME) FAILED = FAILED + 1
      END DO
      CALL MPI_IPROBE(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, FLAG,
     &     ST, IERR)
      IF (FLAG) FAILED = FAILED + 1
      CALL MPI_BARRIER(MPI_COMM_WORLD, IERR)
C     persistent
      CALL MPI_RECV_INIT(Y, 1, MPI_INTEGER, LEFT, 3, MPI_COMM_WORLD,
     &     REQ(1), IERR)
      CALL MPI_SEND_INIT(X, 1, MPI_INTEGER, RIGHT, 3, MPI_COMM_WORLD,
     &     REQ(2), IERR)
      DO I = 1, 5
         X(1) = ME + I
         CALL MPI_STARTALL(2, REQ, IERR)
         CALL MPI_WAITALL(2, REQ, MPI_STATUSES_IGNORE, IERR)
         IF (Y(1) .NE. LEFT + I) FAILED = FAILED + 1
      END DO
      CALL MPI_REQUEST_FREE(REQ(1), IERR)
      CALL MPI_REQUEST_FREE(REQ(2), IERR)
C     a row of a matrix, which is not contiguous in Fortran
      DO I = 1, 10
         DO P = 1, 10
            D(I, P) = ME * 100 + I * 10 + P
            E(I, P) = -1
         END DO
      END DO
      CALL MPI_TYPE_VECTOR(10, 1, 10, MPI_DOUBLE_PRECISION, NEWTYPE,
     &     IERR)
      CALL MPI_TYPE_COMMIT(NEWTYPE, IERR)
      CALL MPI_SENDRECV(D(3,1), 1, NEWTYPE, RIGHT, 2, E(5,1), 1,
     &     NEWTYPE, LEFT, 2, MPI_COMM_WORLD, ST, IERR)
      DO P = 1, 10
         IF (E(5, P) .NE. LEFT * 100 + 30 + P) FAILED = FAILED + 1
         IF (E(4, P) .NE. -1) FAILED = FAILED + 1
      END DO
      CALL MPI_TYPE_FREE(NEWTYPE, IERR)
C     collectives
      DO ROOT = 0, NP - 1
         SUMS = -1
         IF (ME .EQ. ROOT) SUMS = 4711 + ROOT
         CALL MPI_BCAST(SUMS, 1, MPI_INTEGER, ROOT, MPI_COMM_WORLD,
     &        IERR)
         IF (SUMS .NE. 4711 + ROOT) FAILED = FAILED + 1
         CALL MPI_GATHER(ME, 1, MPI_INTEGER, Y, 1, MPI_INTEGER, ROOT,
     &        MPI_COMM_WORLD, IERR)
         IF (ME .EQ. ROOT) THEN
            DO P = 0, NP - 1
               IF (Y(P + 1) .NE. P) FAILED = FAILED + 1
            END DO
         END IF
      END DO
      SUMS = ME + 1
      CALL MPI_ALLREDUCE(MPI_IN_PLACE, SUMS, 1, MPI_INTEGER, MPI_SUM,
     &     MPI_COMM_WORLD, IERR)
      IF (SUMS .NE. NP * (NP + 1) / 2) FAILED = FAILED + 1
      S = ME + 0.5D0
      CALL MPI_REDUCE(S, T, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0,
     &     MPI_COMM_WORLD, IERR)
      IF (ME .EQ. 0 .AND. T .NE. NP - 0.5D0) FAILED = FAILED + 1
      DO P = 1, NP
         X(P) = ME * 10 + P
      END DO
      CALL MPI_ALLTOALL(X, 1, MPI_INTEGER, Y, 1, MPI_INTEGER,
     &     MPI_COMM_WORLD, IERR)
      DO P = 1, NP
         IF (Y(P) .NE. (P - 1) * 10 + ME + 1) FAILED = FAILED + 1
      END DO
C     an operator of ours that does not commute
      CALL MPI_OP_CREATE(COMPOSE, .FALSE., OP, IERR)
      IN(1) = ME + 2
      IN(2) = 2 * ME + 1
      CALL MPI_TYPE_CONTIGUOUS(2, MPI_INTEGER, COLUMN, IERR)
      CALL MPI_TYPE_COMMIT(COLUMN, IERR)
      CALL MPI_ALLREDUCE(IN, OUT, 1, COLUMN, OP, MPI_COMM_WORLD, IERR)
      SUMS = 2
      WANT = 1
      DO P = 1, NP - 1
         WANT = MOD(WANT * (P + 2) + 2 * P + 1, 10007)
         SUMS = MOD(SUMS * (P + 2), 10007)
      END DO
      IF (OUT(1) .NE. SUMS .OR. OUT(2) .NE. WANT) FAILED = FAILED + 1
      CALL MPI_OP_FREE(OP, IERR)
      CALL MPI_TYPE_FREE(COLUMN, IERR)
C     halves of the world
      CALL MPI_COMM_SPLIT(MPI_COMM_WORLD, MOD(ME, 2), -ME, HALF, IERR)
      CALL MPI_COMM_RANK(HALF, HR, IERR)
      CALL MPI_COMM_SIZE(HALF, HN, IERR)
      CALL MPI_ALLREDUCE(ME, SUMS, 1, MPI_INTEGER, MPI_SUM, HALF, IERR)
      WANT = 0
      DO P = MOD(ME, 2), NP - 1, 2
         WANT = WANT + P
      END DO
      IF (SUMS .NE. WANT) FAILED = FAILED + 1
      CALL MPI_COMM_FREE(HALF, IERR)
      CALL MPI_ALLREDUCE(FAILED, ALLFAIL, 1, MPI_INTEGER, MPI_SUM,
     &     MPI_COMM_WORLD, IERR)
      IF (ME .EQ. 0) THEN
         WRITE(*, '(A,I4,A,2I7,A,I4)') 'ranks', NP, ' map', OUT,
     &        ' failures', ALLFAIL
      END IF
      CALL MPI_FINALIZE(IERR)
      IF (ALLFAIL .NE. 0) STOP 1
      END

      SUBROUTINE COMPOSE(A, B, N, TYPE)
      INTEGER N, TYPE, I, A(2, N), B(2, N)
      DO I = 1, N
         B(2, I) = MOD(A(2, I) * B(1, I) + B(2, I), 10007)
         B(1, I) = MOD(A(1, I) * B(1, I), 10007)
      END DO
      END

package collectives

// solo is a Local for a cluster with one rank. It copies, and makes no native calls.
type solo struct{}

func (solo) Rank() int                                  { return 0 }
func (solo) Size() int                                  { return 1 }
func (solo) Barrier() (Request, error)                  { return nil, nil }
func (solo) Bcast([]byte, int) (Request, error)         { return nil, nil }
func (solo) Exscan(_, _ []byte, _ int) (Request, error) { return nil, nil }

func (solo) Gatherv(send, recv []byte, counts, displs []int64, _ int) (Request, error) {
	copy(block(recv, counts[0], displs[0]), send)
	return nil, nil
}

func (solo) Scatterv(send []byte, counts, displs []int64, recv []byte, _ int) (Request, error) {
	copy(recv, block(send, counts[0], displs[0]))
	return nil, nil
}

func (solo) Allgatherv(send, recv []byte, counts, displs []int64) (Request, error) {
	copy(block(recv, counts[0], displs[0]), send)
	return nil, nil
}

func (solo) Alltoallv(send []byte, scounts, sdispls []int64, recv []byte, rcounts, rdispls []int64) (Request, error) {
	copy(block(recv, rcounts[0], rdispls[0]), block(send, scounts[0], sdispls[0]))
	return nil, nil
}

func (solo) Reduce(send, recv []byte, _, _ int) (Request, error) { copy(recv, send); return nil, nil }
func (solo) Allreduce(send, recv []byte, _ int) (Request, error) { copy(recv, send); return nil, nil }
func (solo) ReduceScatter(send, recv []byte, _ []int64) (Request, error) {
	copy(recv, send)
	return nil, nil
}
func (solo) Scan(send, recv []byte, _ int) (Request, error) { copy(recv, send); return nil, nil }

// block returns count bytes at a displacement. Empty blocks may have any displacement.
func block(b []byte, count, displ int64) []byte {
	if count == 0 {
		return nil
	}
	return b[displ : displ+count]
}

package collectives

// barrier returns the schedule of a barrier: a native gather, or in clusters of many ranks a native
// barrier; messages between leaders that their clusters have entered; and a native broadcast by a
// leader once all clusters have entered.
//
//	time 2λ + L, bytes 0, messages 1
func barrier(e *env) Schedule {
	first := e.local.Barrier
	if e.l.few() {
		first = e.gatherSmall(e.Scratch(1), e.Scratch(e.local.Size()))
	}
	s := Schedule{step(first)}
	if e.local.Rank() == 0 {
		var b []op
		e.l.others(func(k int) {
			peer := e.l.Member(k, 0)
			b = append(b, func() (Request, error) { return e.Recv(peer, 0, nil) }, func() (Request, error) { return e.Send(peer, 0, nil) })
		})
		s = append(s, round(b...))
	}
	last := e.Scratch(1)
	return append(s, step(func() (Request, error) { return e.local.Bcast(last, 0) }))
}

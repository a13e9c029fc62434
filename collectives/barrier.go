package collectives

// barrier: a native barrier, leaders tell each other that their cluster is in, a native barrier that a leader
// enters when all clusters are.
//
//	time 2λ + L, bytes 0, messages 1
func barrier(e *env) Schedule {
	s := Schedule{round(e.local.Barrier)}
	if e.l.local() == 0 {
		var b []op
		e.l.others(func(k int) {
			peer := e.l.Members[k][0]
			b = append(b, func() (Request, error) { return e.Recv(peer, 0, nil) }, func() (Request, error) { return e.Send(peer, 0, nil) })
		})
		s = append(s, round(b...))
	}
	return append(s, round(e.local.Barrier))
}

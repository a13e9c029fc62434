package collectives

// With partners, each of many ranks sends its data for another cluster to one rank there.

// partner returns the rank of another cluster that this process sends to.
func (l *Layout) partner(cluster int) int {
	ranks := l.Members(cluster)
	return ranks[l.local()%len(ranks)]
}

// sources calls f for each rank of other clusters whose partner is a local rank, in the same order
// in all processes.
func (l *Layout) sources(local int, f func(rank int)) {
	l.others(func(k int) {
		for i := local; i < len(l.Members(k)); i += len(l.mine()) {
			f(l.Members(k)[i])
		}
	})
}

package forwarder

// Which of two forwarders dials the other is fixed, and whoever does shows what a rank has shown
// it. One that was started again when all its ranks had left has nothing to show: it would be
// waited for in vain, and could not gather the job for those who still need it on its way. So the
// other end of a link that is cut dials as well, after a while (instead). It is taken where another
// forwarder has begun the job, and no rank has joined (dialsTo); from then on it opens that link.

// instead reports whether this end dials a link that is cut though the other end is to. With f.mu.
func (br *bridge) instead() bool {
	h := br.job.hops
	n, ok := h.neighbour(br.zipper)
	return !br.dials && br.first() == nil && h.cert != nil && ok && n.addr != ""
}

// dialsTo reports whether this forwarder opens the link to that one. With f.mu.
func (j *job) dialsTo(zipper int) bool {
	h := j.hops
	if br := h.bridges[zipper]; br != nil {
		return br.dials
	}
	n, _ := h.neighbour(zipper)
	return n.dials && (h.dialled || len(h.bridges) == 0)
}

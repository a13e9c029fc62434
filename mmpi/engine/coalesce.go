package engine

// coalesce gathers small messages that a program sends one after the other, so that one write to
// the link takes many. The first one after a wait goes out at once, and the second; then every
// write takes as many as all before it, at most coalesceMost or coalesceBytes. What is held goes
// out when the program waits, tests or probes. If it does neither, the progress thread writes it
// out after wait.FlushAfter.
type coalesce struct {
	sent  int  // messages since the program last looked for progress
	next  int  // the message that goes out, with all that are held
	bytes int  // held
	some  bool // messages are held
}

// keep: the program has sent a message of so many bytes; it reports whether to hold it.
func (h *coalesce) keep(bytes int) bool {
	h.sent++
	h.bytes += bytes
	h.some = h.sent < h.next && h.bytes < coalesceBytes
	if !h.some {
		h.next, h.bytes = h.sent+min(h.sent, coalesceMost), 0
	}
	return h.some
}

// over: what was held is written out, and the program waits or the progress thread has lost its
// patience.
func (h *coalesce) over() { *h = coalesce{} }

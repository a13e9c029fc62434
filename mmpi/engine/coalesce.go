package engine

// coalesce gathers small messages that a program sends one after the other, so that one write to
// the link takes many. The first two messages after a wait go out at once; then every write takes
// as many as all before it, at most coalesceMost or coalesceBytes. Held messages go out when the
// program waits, tests or probes. If it does none of these, the progress thread writes them out
// after wait.FlushAfter.
type coalesce struct {
	sent  int  // the number of messages sent since the program last looked for progress
	next  int  // the number of the message that goes out together with all held ones
	bytes int  // the size of the held messages in bytes
	some  bool // whether messages are held
}

// keep counts a message of a number of bytes that the program has sent, and reports whether to hold
// it.
func (h *coalesce) keep(bytes int) bool {
	h.sent++
	h.bytes += bytes
	h.some = h.sent < h.next && h.bytes < coalesceBytes
	if !h.some {
		h.next, h.bytes = h.sent+min(h.sent, coalesceMost), 0
	}
	return h.some
}

// over forgets the held messages, which the caller writes out, because the program waits or
// wait.FlushAfter has passed.
func (h *coalesce) over() { *h = coalesce{} }

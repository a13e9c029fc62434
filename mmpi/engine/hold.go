package engine

// hold gathers small messages that a program sends one after the other, so that one write to the link takes many. The first one after a wait
// goes out at once, and the second; then every write takes as many as all before it, at most holdMost or holdBytes. What is held goes out when the
// program waits, tests or probes. If it does neither, the background thread writes it out after wait.FlushAfter.
type hold struct {
	sent  int  // messages since the program last looked for progress
	next  int  // the message that goes out, with all that are held
	bytes int  // held
	some  bool // messages are held
}

const (
	holdMost  = 32
	holdBytes = 16 << 10
)

// keep: the program has sent a message of so many bytes; it reports whether to hold it.
func (h *hold) keep(bytes int) bool {
	h.sent++
	h.bytes += bytes
	h.some = h.sent < h.next && h.bytes < holdBytes
	if !h.some {
		h.next, h.bytes = h.sent+min(h.sent, holdMost), 0
	}
	return h.some
}

// over: what was held is written out, and the program waits or the background thread has lost its patience.
func (h *hold) over() { *h = hold{} }

// writeSent writes out what the program has just sent, or holds it.
func (e *Engine) writeSent(bytes int) {
	if e.wait.Started() && e.hold.keep(bytes) {
		e.wait.FlushSoon()
		return
	}
	e.writeOut()
}

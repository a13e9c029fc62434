package vrank

// LinkEnd is one zipper's end of a link to another one, on a network that both are on.
type LinkEnd struct {
	Zipper  int  // index in the job's zippers
	Listens bool // it has an address on that network
	Ranks   bool // ranks join it: it is on the network of a cluster
}

// mayDial reports whether a can open the link to b. Who opens it shows the other end the Join of a
// rank of its own, so a zipper without ranks waits to be dialled.
func mayDial(a, b LinkEnd) bool { return a.Ranks && b.Listens }

// Dials reports whether a opens the link between two zippers, rather than b: whoever can, and the
// one with the lower index where both can. ok is false when neither can.
func Dials(a, b LinkEnd) (dials, ok bool) {
	x, y := mayDial(a, b), mayDial(b, a)
	if x && y {
		return a.Zipper < b.Zipper, true
	}
	return x, x || y
}

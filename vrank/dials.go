package vrank

// LinkEnd is one zipper's end of a link to another one, on a network that both are on.
type LinkEnd struct {
	Zipper  int  // index in the job's zippers
	Listens bool // whether it has an address on that network
	Ranks   bool // whether ranks join it, because it is on the network of a cluster
}

// mayDial reports whether a can open the link to b. The end that opens it shows the other end the
// Join of one of its ranks, so a zipper without ranks waits to be dialled.
func mayDial(a, b LinkEnd) bool { return a.Ranks && b.Listens }

// Dials reports whether a, rather than b, opens the link between the two zippers. If both can, the
// one with the lower index does. ok is false if neither can.
func Dials(a, b LinkEnd) (dials, ok bool) {
	x, y := mayDial(a, b), mayDial(b, a)
	if x && y {
		return a.Zipper < b.Zipper, true
	}
	return x, x || y
}

//go:build !zipper_next

package wire

// Version is the newest version of the protocol that this end supports.
const Version = 13

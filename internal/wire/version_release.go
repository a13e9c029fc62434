//go:build !zipper_next

package wire

// Version of the protocol: the newest that is spoken here.
const Version = 12

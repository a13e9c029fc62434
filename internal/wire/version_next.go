//go:build zipper_next

package wire

// Version is the next one, as if the protocol had changed in nothing else: a test's forwarder, or
// its ranks, are a release ahead of the others.
const Version = 13

//go:build zipper_next

package wire

// Version is the next version, as if nothing else in the protocol had changed. With it a test's
// forwarder, or its ranks, are a release ahead of the others.
const Version = 14

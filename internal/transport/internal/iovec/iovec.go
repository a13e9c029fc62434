// Package iovec has functions of transports for the list of buffers of a TryWrite.
package iovec

// Empty reports whether all buffers are empty.
func Empty(bufs [][]byte) bool {
	for _, b := range bufs {
		if len(b) > 0 {
			return false
		}
	}
	return true
}

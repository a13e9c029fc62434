// Package iovec has what transports ask of the list of buffers of a TryWrite.
package iovec

// Empty reports whether there is nothing to write in them.
func Empty(bufs [][]byte) bool {
	for _, b := range bufs {
		if len(b) > 0 {
			return false
		}
	}
	return true
}

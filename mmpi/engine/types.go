// Package engine matches, sends and receives messages between clusters.
package engine

// Comm is a spanning communicator.
type Comm struct{}

// Request is one outstanding operation.
type Request struct{}

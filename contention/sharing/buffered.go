package sharing

import "github.com/leidenzipper/zipper/contention/num"

// Buffered is Streams with the queues of the forwarders. Its rates depend on the past, so package
// solve runs this rule by itself and describes it there. Share ignores queues and is that of
// Streams.
type Buffered[T num.Number[T]] struct{ Streams[T] }

func (Buffered[T]) Name() string { return "buffered" }

package sharing

import "github.com/leidenzipper/zipper/contention/num"

// Buffered is Streams with the queues of the forwarders: rates depend on what has happened before,
// so package solve runs it by itself (there it is described) and Share, which knows nothing of
// queues, is that of Streams.
type Buffered[T num.Number[T]] struct{ Streams[T] }

func (Buffered[T]) Name() string { return "buffered" }

package sharing

import "github.com/leidenzipper/zipper/contention/num"

// Buffered is Streams with the queues of the forwarders. Rates depend on what has happened before,
// so package solve runs this rule by itself, and describes it there. Share knows nothing of queues,
// and is that of Streams.
type Buffered[T num.Number[T]] struct{ Streams[T] }

func (Buffered[T]) Name() string { return "buffered" }

package engine

// collQueue is a communicator's collectives, in the order they were started.
type collQueue struct{}

func (q *collQueue) busy() bool { return false }

func (e *Engine) advanceCollectives() int { return 0 }

// Coll is one native collective.
type Coll struct{}

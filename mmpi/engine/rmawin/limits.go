package rmawin

// ringSize is how many messages of a window may be landing at a time. Default 8. Trades memory,
// rma.MaxMessage bytes each, against messages that wait.
const ringSize = 8

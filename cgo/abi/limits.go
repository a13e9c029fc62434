package abi

// threadsAtOnce is how many threads run Go in a program that calls MPI from several. Whoever sleeps
// or gives way in the engine counts, too, and one more waits for up to 10 ms until Go's monitor
// finds it room. Default 16. Trades that against threads of Go's garbage collector, a quarter as
// many.
const threadsAtOnce = 16

package abi

// threadsAtOnce is the number of threads that run Go at a time in a program that calls MPI from
// several threads. A thread that sleeps or yields in the engine counts too; a further thread waits
// for up to 10 ms until Go's monitor finds room for it. Default 16. A greater number costs more
// threads of Go's garbage collector, which has a quarter as many.
const threadsAtOnce = 16

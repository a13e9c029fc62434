// Command guest is a library with a Go runtime of its own, for test/programs/c/runtimes.c.
package main

import "C"

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

var received = make(chan os.Signal, 1)

// guest_listen lets the runtime receive a signal of the process.
//
//export guest_listen
func guest_listen(number C.int) { signal.Notify(received, syscall.Signal(number)) }

// guest_await returns once such a signal has been received.
//
//export guest_await
func guest_await() { <-received }

// guest_work allocates n times, collects the garbage and returns n.
//
//export guest_work
func guest_work(n C.int) C.int {
	for range n {
		kept = make([]byte, 1<<16)
	}
	runtime.GC()
	return n
}

var kept []byte

// guest_recovers returns 1 after a fault that the runtime's handler of SIGSEGV has turned into a
// panic.
//
//export guest_recovers
func guest_recovers() (recovered C.int) {
	defer func() {
		if recover() != nil {
			recovered = 1
		}
	}()
	var nothing *int
	return C.int(*nothing)
}

func main() {}

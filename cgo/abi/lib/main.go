// Command lib is libmmpi-engine.so, which scripts/build builds and the C shim opens in MPI_Init.
package main

import (
	"runtime"
	"runtime/debug"

	"github.com/leidenzipper/zipper/cgo/abi"
	"github.com/leidenzipper/zipper/internal/timerslack"
)

// The cores of the process belong to the program, and it may be bound to one: the few running
// threads that engine.Config.Embedded asks for are enough, and the heap stays near what flow
// control bounds.
func init() {
	timerslack.Workers()
	abi.Embedded()
	runtime.GOMAXPROCS(3)
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(512 << 20)
}

func main() {}

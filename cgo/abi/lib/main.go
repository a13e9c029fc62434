// Command lib is libmmpi-engine.so, which scripts/build builds and the C shim opens in MPI_Init.
// Its C files start the Go runtime as a guest of the program's process.
package main

// #cgo LDFLAGS: -Wl,--wrap=pthread_create -Wl,--wrap=pthread_attr_init -lm
import "C"

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/leidenzipper/zipper/cgo/abi"
)

// The cores of the process belong to the program, and it may be bound to one: the few running
// threads that engine.Config.Embedded asks for are enough, and the heap stays near what flow
// control bounds.
func init() {
	abi.Embedded()
	_ = os.Unsetenv("GOMAXPROCS") // start.c has set it, for the start alone; only a bad name fails
	runtime.GOMAXPROCS(3)
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(512 << 20)
}

// ze_settle returns when the runtime has been started and has the descriptors that it keeps: those
// that it makes when it is started, and those of its poller, which the first file that is watched
// makes.
//
//export ze_settle
func ze_settle() {
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
}

func main() {}

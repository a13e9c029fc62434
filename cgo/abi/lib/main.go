// Command lib is libmmpi-engine.so, which scripts/build builds and the C shim opens in MPI_Init.
// Its C files start the Go runtime as a guest in the program's process.
package main

// #cgo LDFLAGS: -Wl,--wrap=pthread_create -Wl,--wrap=pthread_attr_init -lm
import "C"

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/leidenzipper/zipper/cgo/abi"
)

// init limits the runtime to few running threads (engine.Config.Embedded), because the cores of the
// process belong to the program, which may be bound to one core. The heap stays near the bound that
// flow control sets.
func init() {
	abi.Embedded()
	_ = os.Unsetenv("GOMAXPROCS") // start.c has set it for the start alone; only a bad name fails
	runtime.GOMAXPROCS(3)
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(512 << 20)
}

// ze_settle returns when the runtime has been started and has the descriptors that it keeps: those
// that its start opens, and those of its poller, which the first watched file opens.
//
//export ze_settle
func ze_settle() {
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
}

func main() {}

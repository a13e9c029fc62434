package lab

import (
	"encoding/binary"
	"os"
)

// stayAwake keeps idle processors from sleeping for as long as the file is open, as on nodes that
// are tuned for latency. To wake a processor of a virtual machine takes tens of microseconds, and
// milliseconds where the host has other work, and that time would hide the differences that are
// measured. It uses Linux's PM QoS interface, cpu_dma_latency, and returns nil if the system has no
// such interface.
func stayAwake() *os.File {
	f, err := os.OpenFile("/dev/cpu_dma_latency", os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	if err := binary.Write(f, binary.NativeEndian, int32(0)); err != nil { // the microseconds that waking may take
		f.Close()
		return nil
	}
	return f
}

package budget

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Machine returns the bytes of memory that this process may use: those of the machine or, if fewer,
// the limit of its control group. It returns fewMemory if the system does not tell.
func Machine() int64 {
	most := int64(fewMemory)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		most = int64(info.Totalram) * int64(info.Unit)
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n > 0 {
			most = min(most, n)
		}
	}
	return most
}

package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// varMark is set to a random word in everything a half starts, so that what outlives its mpirun can
// be found.
const varMark = "ZIPPER_LAUNCH"

// reap kills every process of this user whose environment bears the mark, until there is none left.
func reap(mark string) {
	for range reapRounds {
		pids := marked(mark)
		if len(pids) == 0 {
			return
		}
		for _, p := range pids {
			_ = syscall.Kill(p, syscall.SIGKILL) // it may have ended by itself
		}
	}
}

func marked(mark string) []int {
	want := []byte("\x00" + varMark + "=" + mark + "\x00")
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, err := os.ReadFile(f) // empty for a zombie, an error for other users' processes
		if err != nil || len(env) == 0 || !bytes.Contains(append([]byte{0}, env...), want) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

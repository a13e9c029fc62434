package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// varMark is set to a random word in everything a half starts, so that what outlives its mpirun can
// be found.
const varMark = "ZIPPER_LAUNCH"

// reap kills every process of this user whose environment bears the mark, until there is none left.
func reap(mark string) {
	for range reapRounds {
		processes := marked(mark)
		if len(processes) == 0 {
			return
		}
		for _, p := range processes {
			_ = p.Kill() // it may have ended by itself
			_ = p.Release()
		}
	}
}

// marked returns the processes with the mark, other than this one. A process is found before its
// environment is read, so that another one that gets its id is not taken for it.
func marked(mark string) (found []*os.Process) {
	want := []byte("\x00" + varMark + "=" + mark + "\x00")
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		p, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		env, err := os.ReadFile(f) // empty for a zombie, an error for other users' processes
		if err == nil && len(env) > 0 && bytes.Contains(append([]byte{0}, env...), want) {
			found = append(found, p)
		} else {
			_ = p.Release()
		}
	}
	return found
}

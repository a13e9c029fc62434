package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Flags of a process in /proc/PID/stat, which are PF_EXITING and PF_KTHREAD of the kernel.
const (
	exiting      = 0x4
	kernelThread = 0x200000
)

// varMark is set to a random word in all processes of a half, so that those that outlive its mpirun
// can be found.
const varMark = "ZIPPER_LAUNCH"

// reap kills every process of this user whose environment has the mark, until none is left.
func reap(mark string) {
	end := time.Now().Add(execWait)
	for range reapRounds {
		processes, executing := marked(mark)
		for len(processes) == 0 && executing && time.Now().Before(end) {
			time.Sleep(time.Millisecond)
			processes, executing = marked(mark)
		}
		if len(processes) == 0 {
			return
		}
		for _, p := range processes {
			_ = p.Kill() // the process may have ended by itself
			_ = p.Release()
		}
	}
}

// marked returns the processes with the mark, other than this one, and tells whether there are
// processes that cannot be judged yet because they are in the midst of execve. A process is opened
// before its environment is read, so that a later process with the same id is not taken for it.
func marked(mark string) (found []*os.Process, executing bool) {
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
		env, err := os.ReadFile(f) // other users' processes cannot be read
		if err == nil && len(env) > 0 && bytes.Contains(append([]byte{0}, env...), want) {
			found = append(found, p)
			continue
		}
		_ = p.Release()
		if err == nil && len(env) == 0 {
			stat, err := os.ReadFile(filepath.Join(filepath.Dir(f), "stat"))
			executing = executing || err == nil && inExec(stat)
		}
	}
	return found, executing
}

// inExec tells whether /proc/PID/stat is that of a process in the midst of execve: its memory is
// new, and its environment does not exist yet. Zombies, processes that are exiting and threads of
// the kernel have no environment either.
func inExec(stat []byte) bool {
	const state, flags, envEnd = 3, 9, 51 // numbers of fields, from 1 (proc(5))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= envEnd-state {
		return false
	}
	f, err := strconv.ParseUint(string(fields[flags-state]), 10, 64)
	return err == nil && f&(exiting|kernelThread) == 0 && string(fields[envEnd-state]) == "0" &&
		!bytes.ContainsAny(fields[0], "ZXx")
}

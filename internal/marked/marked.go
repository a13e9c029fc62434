// Package marked finds and kills processes by a variable of their environment. A program that is
// started by a launcher, or in a session of its own, is found although it is no descendant.
package marked

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

// rounds bounds the searches of Kill, because a process may fork during a search.
const rounds = 20

// execWait is how long a search waits for processes in the midst of execve, whose environment
// cannot be read yet, 2 s. They take less than 1 ms, unless other processes have all cores.
const execWait = 2 * time.Second

// Kill kills every process of this user whose environment has the variable, as "NAME=value", until
// none is left. It is safe for concurrent use.
func Kill(variable string) {
	end := time.Now().Add(execWait)
	for range rounds {
		processes := find(variable, end)
		if len(processes) == 0 {
			return
		}
		for _, p := range processes {
			_ = p.Kill() // the process may have ended by itself
			_ = p.Release()
		}
	}
}

// Processes returns the ids of the processes of this user whose environment has the variable, as
// "NAME=value". It is safe for concurrent use.
func Processes(variable string) []int {
	var pids []int
	for _, p := range find(variable, time.Now().Add(execWait)) {
		pids = append(pids, p.Pid)
		_ = p.Release()
	}
	return pids
}

// find returns the processes with the variable. While there are none, it searches again until no
// process is in the midst of execve, or until end.
func find(variable string, end time.Time) []*os.Process {
	processes, executing := search(variable)
	for len(processes) == 0 && executing && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
		processes, executing = search(variable)
	}
	return processes
}

// search returns the processes with the variable, other than this one, and tells whether there are
// processes that cannot be judged yet because they are in the midst of execve. A process is opened
// before its environment is read, so that a later process with the same id is not taken for it.
func search(variable string) (found []*os.Process, executing bool) {
	want := []byte("\x00" + variable + "\x00")
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

// inExec tells whether a process whose environment was found empty was in the midst of execve, from
// its /proc/PID/stat, which was read later. Its memory was new then, and its environment did not
// exist yet; by now the environment may exist. Zombies, processes that are exiting and threads of
// the kernel have no environment, and that of others can be empty for good.
func inExec(stat []byte) bool {
	const state, flags, envStart, envEnd = 3, 9, 50, 51 // numbers of fields, from 1 (proc(5))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= envEnd-state {
		return false
	}
	f, err := strconv.ParseUint(string(fields[flags-state]), 10, 64)
	start, end := string(fields[envStart-state]), string(fields[envEnd-state])
	return err == nil && f&(exiting|kernelThread) == 0 && (end == "0" || end != start) &&
		!bytes.ContainsAny(fields[0], "ZXx")
}

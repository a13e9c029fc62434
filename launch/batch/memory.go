package batch

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// killed counts the processes that the kernel has killed for want of memory: in this process's
// control group, in those above it that belong to the batch job, and in the job's steps.
type killed struct {
	files []string
	at    int // then
}

// readKilled finds the files, and what they say now.
func readKilled() killed {
	own, _ := os.ReadFile("/proc/self/cgroup")
	k := killed{files: killedFiles("/sys/fs/cgroup", string(own))}
	k.at = k.now()
	return k
}

// killedFiles are memory.events of the unified hierarchy, which count what is below them, too, or
// memory.oom_control of the older one, which do not.
func killedFiles(root, own string) (files []string) {
	for line := range strings.Lines(own) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		switch {
		case part[0] == "0" && part[1] == "":
			files = append(files, filepath.Join(root, jobGroup(part[2]), "memory.events"))
		case part[1] == "memory":
			at := filepath.Join(root, "memory", jobGroup(part[2]))
			files = append(files, filepath.Join(at, "memory.oom_control"))
			for _, below := range []string{"*", "*/*"} { // steps and their tasks
				more, _ := filepath.Glob(filepath.Join(at, below, "memory.oom_control"))
				files = append(files, more...)
			}
		}
	}
	return files
}

// jobGroup is the batch job's group that a group is in, such as /slurm/uid_1/job_12 of
// …/job_12/step_batch; else the group itself.
func jobGroup(group string) string {
	for at := path.Clean("/" + group); at != "/"; at = path.Dir(at) {
		if strings.HasPrefix(path.Base(at), "job_") {
			return at
		}
	}
	return group
}

func (k killed) now() (n int) {
	for _, f := range k.files {
		b, _ := os.ReadFile(f)
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
				i, _ := strconv.Atoi(f[1])
				n += i
			}
		}
	}
	return n
}

// since is how many have been killed since then.
func (k killed) since() int { return k.now() - k.at }

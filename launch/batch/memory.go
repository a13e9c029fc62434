package batch

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// killed counts the processes that the kernel has killed because memory ran out: in this process's
// control group, in the groups above it that belong to the batch job, and in the job's steps.
type killed struct {
	// files are those of the control groups that count such processes.
	files []string
	// at is the sum of their counts when the files were found.
	at int
}

// readKilled finds the files and reads their counts.
func readKilled() killed {
	own, _ := os.ReadFile("/proc/self/cgroup")
	k := killed{files: killedFiles("/sys/fs/cgroup", string(own))}
	k.at = k.now()
	return k
}

// killedFiles returns memory.events of the unified hierarchy, which also counts the groups below,
// or memory.oom_control of the older hierarchy, which does not.
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

// jobGroup returns the batch job's group that contains a group, such as /slurm/uid_1/job_12 for
// …/job_12/step_batch. It returns the group itself if there is no such group.
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

// since returns the number of processes killed since the files were found.
func (k killed) since() int { return k.now() - k.at }

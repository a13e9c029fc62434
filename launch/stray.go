package launch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A script or an interpreter may start the MPI program without our library: by env -i, a tool's own
// LD_PRELOAD, or a container that lacks it. Each process would then be a world of its own, and do
// its work in vain. So until a process is zipped, the launcher examines the processes that it has
// started on this host.

// stray is a process that has an MPI library without ours.
type stray struct {
	pid     int
	program string
	// library is the file of the MPI library.
	library string
}

func (s stray) Error() string {
	return fmt.Sprintf("process %d (%s) has loaded %s without MMPI, so it would not take part in the job: LD_PRELOAD or LD_AUDIT, which zipper sets, did not reach it (env -i, another LD_PRELOAD, a container without zipper's directory?): keep both, or link the program with zipper cc or fc",
		s.pid, s.program, s.library)
}

// findStray examines the processes below root until ctx ends, or a process is zipped. It returns an
// error for a stray that it has seen in several looks, because a process that only prints a version
// ends sooner.
func findStray(ctx context.Context, proc string, root int) error {
	seen := map[int]int{}
	for pause := strayPause; ; pause = min(pause*5/4, maxStrayPause) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		found, zipped := strays(proc, root)
		if zipped {
			return nil
		}
		now := map[int]int{}
		for _, s := range found {
			if now[s.pid] = seen[s.pid] + 1; now[s.pid] == strayLooks {
				return s
			}
		}
		seen = now
	}
}

// strays returns the strays below a process. zipped tells that some process there has our library
// as well.
func strays(proc string, root int) (found []stray, zipped bool) {
	children := map[int][]int{}
	files, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // the process has ended
		}
		// The line is: pid (name) state parent …, where the name may contain any character.
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		words := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if err != nil || len(words) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(words[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	for below := slices.Clone(children[root]); len(below) > 0; below = below[1:] {
		pid := below[0]
		below = append(below, children[pid]...)
		library, ours := mapped(filepath.Join(proc, strconv.Itoa(pid), "maps"))
		if ours {
			return nil, true
		}
		if library != "" {
			name, _ := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "comm"))
			found = append(found, stray{pid, strings.TrimSpace(string(name)), library})
		}
	}
	return found, false
}

// mapped returns the MPI library that a process has mapped, and tells whether our library is mapped
// before it.
func mapped(maps string) (library string, ours bool) {
	text, err := os.ReadFile(maps)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		_, path, ok := strings.Cut(strings.TrimSpace(line), "/")
		if !ok {
			continue
		}
		switch name := filepath.Base(path); {
		case strings.HasPrefix(name, "libmmpi-") && !strings.HasPrefix(name, "libmmpi-audit") &&
			!strings.HasPrefix(name, "libmmpi-signals") && !strings.HasPrefix(name, "libmmpi-unmaps"):
			return "", true
		case strings.HasPrefix(name, "libmpi.so."), strings.HasPrefix(name, "libmpich.so."),
			strings.HasPrefix(name, "libmpi_abi"):
			library = "/" + path
		}
	}
	return library, false
}

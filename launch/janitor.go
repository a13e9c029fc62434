package launch

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// janitor removes a launcher's directories when the launcher is gone, however it ended: kill -9
// leaves it no time, and its next start may be far off, or elsewhere. It waits at the end of a pipe
// whose other end closes with the launcher. It has a session of its own, so that what ends the
// processes of a terminal or a job by their group does not end it. What still dies may write
// meanwhile, so it looks more than once.
const janitor = `trap '' INT TERM HUP QUIT PIPE
read -r done && exit
for i in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$@"
  left=
  for d; do [ -e "$d" ] && left=1; done
  [ "$left" ] || [ $i -lt 3 ] || exit
  sleep 0.5
done`

// clean has the directories removed when this process has ended. stop says that there is no need
// any more. If no janitor can be had that is no error: the next launcher cleans.
func clean(dirs ...string) (stop func()) {
	r, w, err := os.Pipe() // both close on exec, so no other child holds the pipe
	if err != nil {
		return func() {}
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", janitor, "zipper-janitor"}, dirs...)...)
	cmd.Stdin = r
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin"} // nothing of the job
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	r.Close()
	if err != nil {
		w.Close()
		return func() {}
	}
	return func() {
		_, _ = io.WriteString(w, "done\n") // if it is gone there is nobody to tell
		w.Close()
		_ = cmd.Wait() // it has nothing to say
	}
}

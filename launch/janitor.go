package launch

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// janitor removes a launcher's directories when the launcher has ended for any reason: kill -9
// leaves it no time, and the next launcher may start much later, or on another host. The janitor
// waits at the end of a pipe whose other end closes with the launcher. It has a session of its own,
// so that a signal to the process group of a terminal or a job does not end it. Processes that are
// still ending may write meanwhile, so it removes the directories more than once.
const janitor = `trap '' INT TERM HUP QUIT PIPE
read -r done && exit
for i in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$@"
  left=
  for d; do [ -e "$d" ] && left=1; done
  [ "$left" ] || [ $i -lt 3 ] || exit
  sleep 0.5
done`

// clean has the directories removed when this process has ended; stop calls that off. A janitor
// that cannot be started is no error, because the next launcher cleans up.
func clean(dirs ...string) (stop func()) {
	r, w, err := os.Pipe() // both close on exec, so no other child holds the pipe
	if err != nil {
		return func() {}
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", janitor, "zipper-janitor"}, dirs...)...)
	cmd.Stdin = r
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin"} // the job's environment stays out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	r.Close()
	if err != nil {
		w.Close()
		return func() {}
	}
	return func() {
		_, _ = io.WriteString(w, "done\n") // if the janitor is gone the write fails
		w.Close()
		_ = cmd.Wait() // its status does not matter
	}
}

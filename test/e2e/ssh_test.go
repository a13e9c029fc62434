package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sshd runs an OpenSSH server on gB, on the long link, and returns the command that logs in there
// from gA.
func (l *lab) sshd() (login string) {
	b := l.b
	dir := b.T.TempDir()
	for _, key := range []string{"host", "user"} {
		b.OK(b.Run(nil, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)))
	}
	public, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		b.T.Fatal(err)
	}
	for name, text := range map[string]string{
		"known": "10.81.4.2 " + string(public),
		"config": fmt.Sprintf("ListenAddress 10.81.4.2\nHostKey %s/host\nAuthorizedKeysFile %[1]s/user.pub\nPidFile none\n"+
			"UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel ERROR\n", dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.T.Fatal(err)
		}
	}
	const own = "/run/sshd" // the package makes this directory when the system starts
	if err := os.Mkdir(own, 0o755); err == nil {
		b.T.Cleanup(func() { os.Remove(own) })
	}
	server := b.Serve(l.env, "scripts/lab", "on", "gB", "/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(dir, "config"))
	login = fmt.Sprintf("ssh -F none -i %s/user -o UserKnownHostsFile=%[1]s/known -o BatchMode=yes "+
		"-o ServerAliveInterval=2 -o ServerAliveCountMax=3 root@10.81.4.2", dir)
	b.WaitFor(20*time.Second, "sshd to let us in", func() bool {
		if b.T.Failed() {
			b.T.Log(server.Stderr())
		}
		r := b.Run(nil, l.env, append([]string{"scripts/lab", "on", "gA"}, append(strings.Fields(login), "true")...)...)
		return r.Status == 0
	})
	return login
}

// carriers returns the ssh processes that carry links from gA.
func (l *lab) carriers() (pids []int) {
	for _, word := range strings.Fields(l.b.Run(nil, nil, "ip", "netns", "pids", l.name()+"-gA").Stdout) {
		line, _ := os.ReadFile("/proc/" + word + "/cmdline") // an error: the process has ended
		if bytes.HasPrefix(line, []byte("ssh\x00")) && bytes.Contains(line, []byte("\x00-W\x00")) &&
			bytes.Contains(line, []byte("/user\x00")) {
			pid, _ := strconv.Atoi(word)
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestLabSSH lets only ssh pass from one site to the other: a trunk's connections are carried by
// ssh commands, jobs run as natively, and data of a killed ssh are sent again. The error of an ssh
// that cannot connect is in the forwarder's log.
func TestLabSSH(t *testing.T) {
	l := twoSites(t, "--delay", "20ms", "--open", "gB:22")
	login := l.sshd()
	l.forwarder("gB")
	dialling := func(port, login string) *Proc {
		return l.forwarder("gA", "--listen", ":"+port, "--status", "127.0.0.1:1"+port, "--dial-by",
			"10.81.4.2:7475="+login+" -W localhost:7475")
	}
	// a key that belongs to no user
	good, bad := dialling("7475", login), dialling("7485", strings.Replace(login, "/user ", "/host ", 1))
	if !strings.Contains(good.Stderr(), "slower than by TCP") {
		t.Errorf("not told that it is slower:\n%s", good.Stderr())
	}
	random, stream := l.both("random.c"), l.both("stream.c")
	job := func(l *lab, port string) string {
		return l.sites("{"+strings.Replace(fmt.Sprintf(siteA, ""), "7475", port, 1)+", dial: [wan]}",
			"{"+fmt.Sprintf(siteB, wanB)+"}")
	}
	t.Run("jobs", func(t *testing.T) {
		t.Parallel()
		l := l.in(t)
		b := l.b
		job := job(l, "7475")
		native := b.OK(b.Native(OpenMPI, 4, strings.Replace(random, "{mpi}", OpenMPI, 1), "3", "60"))
		b.Same(native, b.OK(b.Run(nil, l.env, b.Zipper, "run", "--file", job, "--", random, "3", "60")), nil)
		s := l.streams(stream, job)
		s.waitProgress("the stream to run")
		shows := func(want string) {
			t.Helper()
			b.WaitFor(time.Minute, want, func() bool {
				r := b.Run(nil, l.env, "scripts/lab", "on", "gA", b.Zipper, "status", "127.0.0.1:17475")
				return regexp.MustCompile(want).MatchString(r.Stdout)
			})
		}
		shows(`to the forwarder 10\.81\.4\.2:7475: 5 connections by a command, slower than those of TCP`)
		if err := syscall.Kill(l.carriers()[2], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		shows(`5 connections by a command, .*1 lost so far`)
		s.waitProgress("the stream to go on")
		s.end()
		b.WaitFor(20*time.Second, "all of ssh to end with the job", func() bool { return len(l.carriers()) == 0 })
	})
	t.Run("not let in", func(t *testing.T) {
		t.Parallel()
		l := l.in(t)
		l.cannot(job(l, "7485"), random, "cannot reach the forwarder 10.81.4.2:7475", "no link from the forwarder")
		if !strings.Contains(bad.Stderr(), "Permission denied") {
			t.Errorf("the output of ssh is not in the log:\n%s", bad.Stderr())
		}
	})
}

// both compiles a C program for both libraries, and returns its path with {mpi} in it.
func (l *lab) both(name string) string {
	l.b.Compile(MPICH, "test/programs/c/"+name)
	return strings.Replace(l.b.Compile(OpenMPI, "test/programs/c/"+name), "/"+OpenMPI+"/", "/{mpi}/", 1)
}

package launch

import (
	"context"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/leidenzipper/zipper/internal/marked"
)

// varMark is set to a random word in all processes of a half, so that those that outlive its mpirun
// can be found.
const varMark = "ZIPPER_LAUNCH"

// supervise runs cmd in a process group of its own until cmd and all processes with the mark are
// gone. watch, if not nil, gets its process id, and ends cmd by returning an error, which supervise
// returns.
func supervise(ctx context.Context, cmd *exec.Cmd, mark string, watch func(context.Context, int) error) (status int,
	err error) {
	// The kernel sends Pdeathsig when the *thread* that started the child ends, so the thread is
	// kept until the child has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	// Standard input must not keep Wait from returning, so a goroutine feeds it through a pipe, and
	// Wait does not wait for that goroutine.
	stdin := cmd.Stdin
	cmd.Stdin = nil
	var pipe io.WriteCloser
	if stdin != nil {
		if pipe, err = cmd.StdinPipe(); err != nil {
			return 1, err
		}
	}
	out, err := outlets(cmd)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		for _, o := range out {
			o.close()
		}
		return 127, err
	}
	for _, o := range out {
		o.started()
	}
	if pipe != nil {
		go func() {
			_, _ = io.Copy(pipe, stdin) // a program that does not read its input has not failed
			pipe.Close()
		}()
	}
	job := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var found error
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		if watch == nil {
			return
		}
		if found = watch(ctx, cmd.Process.Pid); found != nil {
			stop(found)
		}
	}()
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		_ = cmd.Process.Signal(syscall.SIGTERM) // mpirun passes it on and cleans up
		select {
		case <-over:
		case <-time.After(Grace):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			marked.Kill(varMark + "=" + mark)
		}
	}()
	err = cmd.Wait()
	awaitEOF(out) // of processes that end by themselves
	close(over)
	<-watched
	stop(nil)
	<-looked
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	marked.Kill(varMark + "=" + mark)
	for _, o := range out {
		o.end(job)
	}
	if cmd.ProcessState == nil {
		return 1, err
	}
	if found != nil {
		return 1, found
	}
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ok && ws.Signaled():
		return 128 + int(ws.Signal()), nil
	default:
		return cmd.ProcessState.ExitCode(), nil
	}
}

package launch

import (
	"context"
	"io"
	"os"
	"os/exec"
	"time"
)

// outlet copies what a command and its children write to one of its outputs. Where package os/exec,
// with a WaitDelay, drops what a slow reader has not taken in time, an outlet drops nothing. It
// only bounds the time for which it waits for a process that keeps the pipe open.
type outlet struct {
	from, child *os.File // the ends of the pipe; child is the command's
	to          io.Writer
	over        chan struct{} // closed by end
	done        chan struct{} // closed when all has been copied
}

// outlets takes the place of the writers of cmd, which has not been started.
func outlets(cmd *exec.Cmd) (list []*outlet, err error) {
	for _, w := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		if *w == nil {
			continue
		}
		o := &outlet{to: *w, over: make(chan struct{}), done: make(chan struct{})}
		if o.from, o.child, err = os.Pipe(); err != nil {
			return list, err
		}
		list, *w = append(list, o), o.child
	}
	return list, nil
}

// started begins to copy, once the command has its end of the pipe.
func (o *outlet) started() {
	o.child.Close()
	go o.copy()
}

func (o *outlet) close() {
	o.from.Close()
	o.child.Close()
}

// copy copies until the last process has closed the pipe. After end it copies what the pipe can
// still hold, and waits no longer than Grace for each part.
func (o *outlet) copy() {
	defer close(o.done)
	defer o.from.Close()
	buf := make([]byte, pipeRoom)
	for rest := pipeRoom; rest > 0; {
		over := false
		select {
		case <-o.over:
			over = true
			_ = o.from.SetReadDeadline(time.Now().Add(Grace))
		default:
		}
		n, err := o.from.Read(buf[:rest])
		if over {
			rest -= n
		}
		if n > 0 {
			if _, err := o.to.Write(buf[:n]); err != nil {
				return // the processes get SIGPIPE
			}
		}
		if err != nil {
			return
		}
	}
}

// end tells the outlet that no process has anything more to write, and waits until the reader has
// taken everything or, once ctx has ended, for at most Grace.
func (o *outlet) end(ctx context.Context) {
	close(o.over)
	_ = o.from.SetReadDeadline(time.Now().Add(Grace)) // for a read in progress
	select {
	case <-o.done:
		return
	case <-ctx.Done():
	}
	select {
	case <-o.done:
	case <-time.After(Grace):
	}
}

// awaitEOF waits until all outlets have copied everything, at most Grace.
func awaitEOF(list []*outlet) {
	late := time.After(Grace)
	for _, o := range list {
		select {
		case <-o.done:
		case <-late:
			return
		}
	}
}

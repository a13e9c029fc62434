package doctor

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/leidenzipper/zipper/internal/agent"
	"github.com/leidenzipper/zipper/launch"
)

// patient is a host under examination: the host where a cluster's launcher runs.
type patient struct {
	// cluster is the name of the cluster.
	cluster string
	// where tells how the host was reached: "this host" or the login.
	where string
	Hello
	conn *agent.Conn
}

// probe starts a probe on this host, or on another host through the remote shell.
func probe(ctx context.Context, cluster string, rsh []string, zipper string) (p *patient, err error) {
	p = &patient{cluster: cluster, where: "this host"}
	if rsh == nil {
		p.conn = agent.Here(func(r io.Reader, w io.Writer) error { return Serve(ctx, r, w) })
	} else {
		p.where = rsh[len(rsh)-1]
		words := append(rsh[1:len(rsh):len(rsh)], launch.ShellPath(zipper)+" doctor --probe")
		cmd := exec.CommandContext(ctx, rsh[0], words...)
		cmd.Stderr = os.Stderr
		cmd.WaitDelay = launch.Grace
		if p.conn, err = agent.Start(cmd); err != nil {
			return nil, err
		}
	}
	if err := p.conn.Hello(&p.Hello); err != nil {
		p.stop()
		return nil, fmt.Errorf("no probe on %s (%w): can you log in to it without a password, and is zipper installed there?",
			p.where, err)
	}
	return p, nil
}

// stop ends the probe.
func (p *patient) stop() {
	p.conn.Close()
	p.conn.Wait(launch.Grace)
}

// dial has the patient connect to the targets.
func (p *patient) dial(targets []Target) ([]Answer, error) {
	var a []Answer
	if err := p.conn.Ask(targets, &a); err != nil {
		return nil, fmt.Errorf("the probe on %s is gone: %w", p.where, err)
	}
	if len(a) != len(targets) {
		return nil, fmt.Errorf("the probe on %s gave %d answers to %d questions", p.where, len(a), len(targets))
	}
	return a, nil
}

package spec

import "errors"

// defaultRsh has no terminal to ask on: a question for a password would only be waited for.
var defaultRsh = []string{"ssh", "-o", "BatchMode=yes"}

// RemoteShell is the command that is put before a host and a command to run there.
func (j *Job) RemoteShell() []string {
	if len(j.Rsh) == 0 {
		return append([]string{}, defaultRsh...)
	}
	return append([]string{}, j.Rsh...)
}

// Login is the remote shell's command line up to the host where the cluster's launcher runs; nil:
// it runs here.
func (j *Job) Login(c Cluster) ([]string, error) {
	if c.Launcher != "ssh" {
		return nil, nil
	}
	host := c.Login
	if host == "" {
		if c.Hosts == "" {
			return nil, errors.New("launcher=ssh needs a host to log in to: login=HOST, or hosts=FILE with that host first")
		}
		var err error
		if host, err = FirstHost(c.Hosts); err != nil {
			return nil, err
		}
	}
	return append(j.RemoteShell(), host), nil
}

// LoginTo is the remote shell's command line up to a host of the cluster: that where its launcher
// runs or, if that is this one, the first of its host file; nil: the cluster is on this host.
func (j *Job) LoginTo(c Cluster) ([]string, error) {
	if c.Launcher != "ssh" && c.Hosts != "" {
		c.Launcher = "ssh"
	}
	return j.Login(c)
}

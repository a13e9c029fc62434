package spec

import "errors"

// defaultRsh has no terminal, because a question for a password would wait for ever.
var defaultRsh = []string{"ssh", "-o", "BatchMode=yes"}

// RemoteShell returns the command that stands before a host and a command to run there.
func (j *Job) RemoteShell() []string {
	if len(j.Rsh) == 0 {
		return append([]string{}, defaultRsh...)
	}
	return append([]string{}, j.Rsh...)
}

// Login returns the remote shell's command line up to the host where the cluster's launcher runs,
// or nil if the launcher runs here.
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

// LoginTo returns the remote shell's command line up to a host of the cluster: the host where its
// launcher runs or, if that is this host, the first of its host file. It returns nil if the cluster
// is on this host.
func (j *Job) LoginTo(c Cluster) ([]string, error) {
	if c.Launcher != "ssh" && c.Hosts != "" {
		c.Launcher = "ssh"
	}
	return j.Login(c)
}

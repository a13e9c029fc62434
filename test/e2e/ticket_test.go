package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTickets checks that a forwarder with the site's public key runs the jobs that have its
// tickets, and no others.
func TestTickets(t *testing.T) {
	b := New(t)
	dir := t.TempDir()
	site, secret := filepath.Join(dir, "site"), filepath.Join(dir, "secret")
	b.OK(b.Run(nil, nil, b.Zipper, "ticket", "--make-key", site))
	b.OK(b.Run(nil, nil, b.Zipper, "secret", secret))
	f := b.StartForwarder("--ticket-key", site+".pub")
	// ticket makes a ticket for a user's job, as the site does: it needs the job's key only.
	ticket := func(job, ranks, expires string) string {
		key := strings.TrimSpace(b.OK(b.Run(nil, nil, b.Zipper, "ticket", "--secret-file", secret, "--job",
			job)).Stdout)
		r := b.OK(b.Run(nil, nil, b.Zipper, "ticket", "--key", site, "--user", "alice", "--job", job, "--job-key", key,
			"--ranks", ranks, "--expires", expires))
		name := filepath.Join(t.TempDir(), "ticket")
		if err := os.WriteFile(name, []byte(r.Stdout), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	run := func(job string, flags ...string) Result {
		args := append([]string{b.Zipper, "run", "--job", job, "--zipper", f.Addr, "--cluster", "a=1,mpi=openmpi",
			"--cluster", "b=1,mpi=mpich"}, flags...)
		return b.Run(nil, nil, append(args, "--", bad(b), "finish")...)
	}
	id := JobID(t)
	good := ticket(id, "2", "1h")
	b.OK(run(id, "--secret-file", secret, "--ticket-file", good))
	if !strings.Contains(f.Stderr(), `"user": "alice"`) {
		t.Errorf("the log does not name the user:\n%s", f.Stderr())
	}
	for what, c := range map[string]struct {
		job   string
		flags []string
		want  string
	}{
		"no ticket":          {id, []string{"--secret-file", secret}, "requires a ticket"},
		"another secret":     {id, []string{"--ticket-file", good}, "made for another secret"},
		"another job":        {id + "x", []string{"--secret-file", secret, "--ticket-file", good}, "it is for job"},
		"more ranks":         {id, []string{"--secret-file", secret, "--ticket-file", ticket(id, "1", "1h")}, "it is for 1 ranks"},
		"not of this site's": {id, []string{"--secret-file", secret, "--ticket-file", secret}, "not one of this site"},
	} {
		if r := run(c.job, c.flags...); r.Status == 0 {
			t.Errorf("%s: the job has run", what)
		} else {
			b.Fails(r, r.Status, "no ticket", c.want)
		}
	}
	// The halves have tickets too. The job's id is a new one, because a half with the old one has
	// just failed.
	id = JobID(t)
	t.Setenv("ZIPPER_TICKET_FILE", ticket(id, "2", "1h"))
	t.Setenv("ZIPPER_SECRET_FILE", secret)
	half := func(cluster, mpi string) *Proc {
		return b.Start(nil, nil, b.Zipper, "join", "--job", id, "--cluster", cluster, "--layout", "a=1,b=1", "--zipper",
			f.Addr,
			"--mpi", mpi, "--", strings.ReplaceAll(bad(b), "{mpi}", mpi), "finish")
	}
	one, two := half("a", OpenMPI), half("b", MPICH)
	b.OK(one.Wait())
	b.OK(two.Wait())
}

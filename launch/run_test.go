package launch

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/leidenzipper/zipper/launch/spec"
)

// TestBoxesOfGoodClustersStayInTheOutput checks that framed messages of the launcher of a cluster
// that ended well stay in the output, also when another cluster fails, because they are about an
// mpirun that the program has started. The framed messages of the failed cluster are in the
// outcome.
func TestBoxesOfGoodClustersStayInTheOutput(t *testing.T) {
	const box = "--------------------------------------------------------------------------\n" +
		"mpirun noticed that process rank 0 with PID 7 on node %s exited on signal 9 (Killed).\n" +
		"--------------------------------------------------------------------------\n"
	boxOf := func(host string) string { return fmt.Sprintf(box, host) }
	rsh := fake(t, fmt.Sprintf("printf -- '%s' \"$1\" >&2\n[ $1 = good ]", box))
	for _, c := range []struct {
		hosts             []string
		prints, inOutcome string
		status            int
	}{
		{[]string{"good"}, boxOf("good"), "", 0},
		{[]string{"bad"}, "", boxOf("bad"), 1},
		{[]string{"good", "bad"}, boxOf("good"), boxOf("bad"), 1},
	} {
		job := spec.Job{Program: []string{"p"}, Rsh: []string{rsh},
			Zippers: []spec.Zipper{{Address: "127.0.0.1:1"}}}
		for _, host := range c.hosts {
			job.Clusters = append(job.Clusters, spec.Cluster{Name: host, Ranks: 1, Launcher: "ssh", Login: host})
		}
		var errs bytes.Buffer
		o, err := Run(context.Background(), &job, Options{Stdout: &bytes.Buffer{}, Stderr: &errs})
		if err != nil || o.Status != c.status || errs.String() != c.prints || o.Launcher != c.inOutcome {
			t.Errorf("%q: status %d (%v), prints\n%sand has in the outcome\n%s", c.hosts, o.Status, err, &errs, o.Launcher)
		}
	}
}

package spec

import (
	"errors"
	"fmt"
	"os"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/traffic/rankfile"
)

// UsePlan makes the job follow a plan, the file that zipper plan --output has written: its order of
// the ranks of MPI_COMM_WORLD, and each cluster's ranks on its hosts, which are in
// NAME.CLUSTER.hosts beside it. Clusters with a host file of their own keep that. A job without
// clusters gets the plan's.
func (j *Job) UsePlan(name string) error {
	places, err := readPlan(name)
	if err != nil {
		return fmt.Errorf("plan %s: %w", name, err)
	}
	var clusters []string
	ranks := map[string]int{}
	for _, p := range places {
		clusters = append(clusters, p.Cluster)
		ranks[p.Cluster]++
	}
	j.Order = jobenv.OrderOf(clusters)
	if len(j.Clusters) == 0 {
		for _, run := range j.Order {
			if n := ranks[run.Name]; n > 0 {
				j.Clusters = append(j.Clusters, Cluster{Name: run.Name, Ranks: n})
				delete(ranks, run.Name)
			}
		}
	}
	if err := jobenv.CheckOrder(j.Order, j.Layout()); err != nil {
		return fmt.Errorf("plan %s: %w: give the clusters the plan's numbers of ranks", name, err)
	}
	for i := range j.Clusters {
		if c := &j.Clusters[i]; c.Hosts == "" {
			c.Hosts, c.InOrder = name+"."+c.Name+".hosts", true
			if _, err := os.Stat(c.Hosts); err != nil {
				return fmt.Errorf("plan %s: the hosts of cluster %s should be beside it: %w (zipper plan --output writes both; or give hosts=FILE)",
					name, c.Name, err)
			}
		}
	}
	return nil
}

func readPlan(name string) ([]rankfile.Place, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	places, err := rankfile.Read(f)
	if err != nil {
		return nil, err
	}
	if len(places) == 0 {
		return nil, errors.New("it has no ranks")
	}
	for rank, p := range places {
		if p.Cluster == "" {
			return nil, fmt.Errorf("rank %d has no cluster: want RANK HOST CLUSTER", rank)
		}
	}
	return places, nil
}

package spec

import (
	"fmt"
	"os"
	"strconv"
)

// HetGroups returns the groups of the heterogeneous Slurm job that this process is in, as clusters
// without a program. They are named g0, g1 and so on, and each has as many ranks as its group has
// tasks. It returns nil if the process is in no such job. get reads the environment.
func HetGroups(get func(string) string) ([]Cluster, error) {
	size, _ := strconv.Atoi(get("SLURM_HET_SIZE"))
	var clusters []Cluster
	for i := range min(size, maxHetGroups) {
		group := strconv.Itoa(i)
		tasks := get("SLURM_NTASKS_HET_GROUP_" + group)
		n, err := strconv.Atoi(tasks)
		if err != nil {
			return nil, fmt.Errorf("group %s of this Slurm job has no number of tasks (%q): ask for it with --ntasks in each group", group, tasks)
		}
		clusters = append(clusters, Cluster{Name: "g" + group, Ranks: n, Group: group})
	}
	return clusters, nil
}

// UseHetGroups makes the groups of this Slurm job the job's clusters, if the job names no clusters.
// Otherwise each cluster gets the group at its index, if there are as many groups and no cluster
// has hosts of its own.
func (j *Job) UseHetGroups() error {
	groups, err := HetGroups(os.Getenv)
	if err != nil || len(groups) < 2 {
		return err
	}
	if len(j.Clusters) == 0 {
		j.Clusters = groups
		return nil
	}
	for _, c := range j.Clusters {
		if c.Hosts != "" || c.Login != "" || c.Launcher != "" || c.Mpirun != "" || len(j.Clusters) != len(groups) {
			return nil
		}
	}
	for i := range j.Clusters {
		j.Clusters[i].Group = groups[i].Group
	}
	return nil
}

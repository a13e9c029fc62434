package jobenv_test

import (
	"fmt"
	"log"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

// The variables of a batch script describe a job.
func ExampleFrom() {
	variables := map[string]string{
		jobenv.VarJob: "j1", jobenv.VarSecret: "3f7a1c0e9b5d42688ea1f0c7d6b3594a", jobenv.VarCluster: "b",
		jobenv.VarLayout: "a=4,b=2", jobenv.VarForwarders: "zip1",
	}
	job, err := jobenv.From(func(name string) string { return variables[name] })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.ID, job.Cluster, job.Layout, job.Forwarders, job.Timeout)
	// Output: j1 b [{a 4} {b 2}] [zip1] 1m0s
}

// A zipper node has an address on each of its networks.
func ExampleParseZipper() {
	_, z, err := jobenv.ParseZipper("a@10.1.0.1+wan@192.0.2.1:7500")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(z.Address("a"), z.Address("wan"), z.On("b"))
	// Output: 10.1.0.1 192.0.2.1:7500 false
}

package vrank_test

import (
	"fmt"
	"log"

	"github.com/leidenzipper/zipper/vrank"
)

// Virtual ranks count over the clusters, one after the other.
func ExampleLayout() {
	l, err := vrank.NewLayout(vrank.Cluster{Name: "a", Size: 4}, vrank.Cluster{Name: "b", Size: 2})
	if err != nil {
		log.Fatal(err)
	}
	cluster, native, _ := l.Place(5)
	fmt.Println(l.Size(), l.Cluster(cluster).Name, native)
	// Output: 6 b 1
}

// Two forwarders between the same clusters make two rows, each a tree by itself.
func ExampleRows() {
	rows, routes, err := vrank.Rows([]string{"a", "b", "c"}, 3, [][]int{{0, 1}, {0, 1}, {1, 2}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows)
	fmt.Println("from the first zipper to c another one is passed:", routes.Distance(0, 2))
	// Output:
	// [[0 2] [1 2]]
	// from the first zipper to c another one is passed: 1
}

// A group is a list of virtual ranks.
func ExampleGroup_Translate() {
	even := vrank.Group{0, 2, 4}
	in, err := even.Translate([]int{2, 0}, vrank.World(6))
	fmt.Println(in, err)
	// Output: [4 0] <nil>
}

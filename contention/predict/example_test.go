package predict_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/leidenzipper/zipper/contention/pattern"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/predict"
)

// Two messages share the zipper's port, which limits them.
func ExampleRun() {
	p, err := platform.Read(strings.NewReader(`
clusters:
  - {name: a, hosts: 2, nic: 1 GB/s}
  - {name: b, hosts: 2, nic: 1 GB/s}
zippers:
  - {name: z1, ports: {a: 1 GB/s, b: 1 GB/s}}
`))
	if err != nil {
		log.Fatal(err)
	}
	messages, err := pattern.Read(strings.NewReader("a1 b1 1GB\na2 b2 1GB\n"), p.Places())
	if err != nil {
		log.Fatal(err)
	}
	r, err := predict.Run(p, messages, predict.Options{Sharing: "max-min"})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range r.Messages {
		fmt.Printf("%s to %s: %.1f s\n", m.From, m.To, m.Finish)
	}
	// Output:
	// a1 to b1: 2.0 s
	// a2 to b2: 2.0 s
}

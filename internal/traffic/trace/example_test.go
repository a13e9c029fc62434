package trace_test

import (
	"log"
	"os"

	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

// A Writer writes the file that zipper predict and zipper plan read.
func ExampleWriter() {
	w, err := trace.NewWriter(os.Stdout, "ring", []trace.Cluster{{Name: "a", Ranks: 1}, {Name: "b", Ranks: 1}})
	if err != nil {
		log.Fatal(err)
	}
	for _, write := range []func() error{
		func() error { return w.Total(trace.Total{Src: 0, Dst: 1, Messages: 1, Bytes: 4096}) },
		func() error { return w.Message(trace.Message{Start: 100, End: 350, Src: 0, Dst: 1, Bytes: 4096}) },
		w.Close,
	} {
		if err := write(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// zipper-trace 1
	// job ring
	// cluster a 1
	// cluster b 1
	// total 0 1 1 4096
	// message 100 350 0 1 4096
	// end 5
}

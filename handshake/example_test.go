package handshake_test

import (
	"fmt"
	"log"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// A rank joins a job of one rank. The example carries the frames from one machine to the other.
func ExampleJoiner() {
	rank, err := handshake.NewJoiner(handshake.Identity{Job: "j1", Secret: "the job's secret", Cluster: "a",
		Layout: []wire.Cluster{{Name: "a", Size: 1}}, TagUB: 1 << 20, Model: "amd64 little endian", Host: "n1",
		TimeoutMS: 60_000}, [wire.NonceLen]byte{1}) // random bytes in a real job
	if err != nil {
		log.Fatal(err)
	}
	keys, err := seal.NewForwarder([seal.PublicLen]byte{3})
	if err != nil {
		log.Fatal(err)
	}
	forwarder := handshake.NewAcceptor([wire.NonceLen]byte{2}, &handshake.Terms{Keys: keys})

	// carry carries frames, and returns the next other event.
	carry := func(from func() (handshake.Event, bool), to func(wire.Header, []byte)) handshake.Event {
		for {
			e, ok := from()
			if !ok || e.Kind != handshake.Send {
				return e
			}
			h, err := wire.ParseHeader(e.Frame)
			if err != nil {
				log.Fatal(err)
			}
			to(h, e.Frame[wire.HeaderLen:])
		}
	}
	carry(forwarder.NextEvent, rank.HandleMessage) // Challenge
	carry(rank.NextEvent, forwarder.HandleMessage) // Join
	verified := carry(forwarder.NextEvent, rank.HandleMessage)

	job := handshake.NewGather(verified.Join)
	if _, refused := job.Add(verified.Join); refused != nil {
		log.Fatal(refused)
	}
	layout, refused := job.Layout()
	if refused != nil {
		log.Fatal(refused)
	}
	forwarder.Admit(&layout, nil)
	carry(forwarder.NextEvent, rank.HandleMessage)
	e, _ := rank.NextEvent()
	fmt.Println(e.Kind == handshake.Joined, e.Layout.Clusters)
	// Output: true [{a 1}]
}

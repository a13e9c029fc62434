//go:build openmpi || mpich

// Ring passes a token once around all processes of all clusters, each adding its rank, and checks
// the sum.
//
//	go build -tags openmpi ./examples/ring && zipper run --cluster a=2 --cluster b=2 -- ./ring
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/leidenzipper/zipper/mmpi"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
	mmpi.Exit(0)
}

func run() error {
	p, err := mmpi.Init(mmpi.Serialized)
	if err != nil {
		return err
	}
	ctx, w := context.Background(), p.World()
	rank, size := w.Rank(), w.Size()
	token := []int64{0}
	next, prev := (rank+1)%size, (rank+size-1)%size
	if rank > 0 {
		if _, err := mmpi.Recv(ctx, w, token, prev, 0); err != nil {
			return err
		}
	}
	token[0] += int64(rank)
	send, err := mmpi.Isend(w, []int64{token[0]}, next, 0)
	if err != nil {
		return err
	}
	if rank == 0 {
		if _, err := mmpi.Recv(ctx, w, token, prev, 0); err != nil {
			return err
		}
		if want := int64(size) * int64(size-1) / 2; token[0] != want {
			return fmt.Errorf("the token came back as %d instead of %d", token[0], want)
		}
		fmt.Printf("the token passed %d processes and came back as %d\n", size, token[0])
	}
	if _, err := send.Wait(ctx); err != nil {
		return err
	}
	return p.Finalize()
}

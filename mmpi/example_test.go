//go:build openmpi || mpich

package mmpi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/leidenzipper/zipper/mmpi"
)

// A program has one Init and one Finalize; the examples share them. `world` is the result of
// p.World(). Every process runs all of them and compares its own output, so they print the same
// everywhere:
//
//	go test -c -tags openmpi -o examples.test ./mmpi && zipper run --cluster a=2 --cluster b=2 -- ./examples.test
var world *mmpi.Comm

func TestMain(m *testing.M) {
	p, err := mmpi.Init(mmpi.Serialized)
	if err != nil {
		log.Fatal(err)
	}
	world = p.World()
	code := m.Run()
	if code != 0 {
		p.Abort(code) // others may wait for this rank
	}
	if err := p.Finalize(); err != nil {
		log.Fatal(err)
	}
	mmpi.Exit(code)
}

// Each rank sends its number to the right-hand neighbour. The receive is posted first, and no rank
// waits before sending.
func ExampleIsend() {
	ctx := context.Background()
	right := (world.Rank() + 1) % world.Size()
	left := (world.Rank() + world.Size() - 1) % world.Size()
	from := make([]int64, 1)
	receive, err := mmpi.Irecv(world, from, left, 7)
	if err != nil {
		log.Fatal(err)
	}
	send, err := mmpi.Isend(world, []int64{int64(world.Rank())}, right, 7)
	if err != nil {
		log.Fatal(err)
	}
	if err := mmpi.WaitAll(ctx, receive, send); err != nil {
		log.Fatal(err)
	}
	fmt.Println("got my neighbour's rank:", from[0] == int64(left))
	// Output: got my neighbour's rank: true
}

// The context ends a receive, and the message that it would have taken stays for the next receive.
func ExampleRecv() {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := mmpi.Recv(ctx, world, make([]byte, 8), world.Rank(), 99) // no rank sends this message
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output: true
}

// The status has the source and the size of the message.
func ExampleComm_Probe() {
	ctx := context.Background()
	to := (world.Rank() + 1) % world.Size()
	send, err := mmpi.Isend(world, []float64{1, 2, 3}, to, 3)
	if err != nil {
		log.Fatal(err)
	}
	status, err := world.Probe(ctx, mmpi.AnySource, 3)
	if err != nil {
		log.Fatal(err)
	}
	buf := make([]float64, status.Bytes/8)
	if _, err := mmpi.Recv(ctx, world, buf, status.Source, status.Tag); err != nil {
		log.Fatal(err)
	}
	if _, err := send.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(buf)
	// Output: [1 2 3]
}

// Each rank sends a row to the right-hand neighbour and gets one from the left.
func ExampleSendrecv() {
	right := (world.Rank() + 1) % world.Size()
	left := (world.Rank() + world.Size() - 1) % world.Size()
	row := make([]float64, 3)
	s, err := mmpi.Sendrecv(context.Background(), world, []float64{1, 2, 3}, right, 4, row, left, 4)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(row, s.Source == left)
	// Output: [1 2 3] true
}

// The sum goes over both clusters while the program computes.
func ExampleIallreduce() {
	sum := make([]int64, 1)
	under, err := mmpi.Iallreduce(world, []int64{1}, sum, mmpi.Sum)
	if err != nil {
		log.Fatal(err)
	}
	mean := 0.0
	for i := range 1000 { // work that does not need the sum
		mean += float64(i) / 1000
	}
	if _, err := under.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.1f, everybody took part: %v\n", mean, int(sum[0]) == world.Size())
	// Output: 499.5, everybody took part: true
}

// Rank 0 gets the blocks of all ranks, in order of rank.
func ExampleGather() {
	var all []int32
	if world.Rank() == 0 {
		all = make([]int32, world.Size())
	}
	if err := mmpi.Gather(world, []int32{int32(world.Rank())}, all, 0); err != nil {
		log.Fatal(err)
	}
	ordered := true
	for i, v := range all {
		ordered = ordered && int(v) == i
	}
	fmt.Println(ordered)
	// Output: true
}

func ExampleAllreduce() {
	top := make([]int32, 1)
	if err := mmpi.Allreduce(world, []int32{int32(world.Rank())}, top, mmpi.Max); err != nil {
		log.Fatal(err)
	}
	fmt.Println(int(top[0]) == world.Size()-1)
	// Output: true
}

// A user operator; this one is not commutative, so it is applied in order of rank.
func ExampleNewOp() {
	last, err := mmpi.NewOp(func(in, inout []int64) {}, false) // in op inout = inout
	if err != nil {
		log.Fatal(err)
	}
	out := make([]int64, 1)
	if err := mmpi.Allreduce(world, []int64{int64(world.Rank())}, out, last); err != nil {
		log.Fatal(err)
	}
	if err := last.Free(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(int(out[0]) == world.Size()-1)
	// Output: true
}

// The even and the odd ranks get a communicator each.
func ExampleComm_Split() {
	half, err := world.Split(world.Rank()%2, world.Rank())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(half.Rank() == world.Rank()/2)
	if err := half.Free(); err != nil {
		log.Fatal(err)
	}
	// Output: true
}

// Each rank writes to the right-hand neighbour's memory, first the value, then a flag that
// announces it.
func ExampleNewWindow() {
	win, err := mmpi.NewWindow(world, 16)
	if err != nil {
		log.Fatal(err)
	}
	right := (world.Rank() + 1) % world.Size()
	left := (world.Rank() + world.Size() - 1) % world.Size()
	for at, b := range [][]byte{{byte(world.Rank())}, {1}} {
		if err := win.Put(b, right, 8*at); err != nil {
			log.Fatal(err)
		}
		if err := win.Flush(right); err != nil {
			log.Fatal(err)
		}
	}
	flag := (*atomic.Uint64)(unsafe.Pointer(&win.Memory()[8]))
	for flag.Load() == 0 {
		if err := win.Sync(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("my neighbour wrote its rank:", win.Memory()[0] == byte(left))
	if err := win.Free(); err != nil {
		log.Fatal(err)
	}
	// Output: my neighbour wrote its rank: true
}

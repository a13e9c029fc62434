package abi

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"unsafe"
)

// text returns ze_error's text as C reads it.
func text() string {
	var b []byte
	for p := unsafe.Pointer(ze_error()); *(*byte)(p) != 0; p = unsafe.Add(p, 1) {
		b = append(b, *(*byte)(p))
	}
	return string(b)
}

// TestErrorOfThread checks that after failed calls in several threads each thread reads the error
// of its own call.
func TestErrorOfThread(t *testing.T) {
	const threads, rounds = 4, 200
	var all sync.WaitGroup
	failed, read := make(chan int, threads), make([]chan int, threads)
	for i := range read {
		read[i] = make(chan int, 1)
		all.Go(func() {
			runtime.LockOSThread() // the thread ends with the goroutine, and with it its text
			if s := text(); s != "no error" {
				t.Errorf("thread %d before any failure: %q", i, s)
			}
			for round := range rounds {
				want := fmt.Sprintf("thread %d, round %d", i, round)
				result(errors.New(want))
				failed <- i
				<-read[i] // all calls have failed
				if s := text(); s != want {
					t.Errorf("%q instead of %q", s, want)
				}
				result(nil)
			}
		})
	}
	for range rounds {
		for range threads {
			<-failed
		}
		for i := range read {
			read[i] <- 1
		}
	}
	all.Wait()
}

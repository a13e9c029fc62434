//go:build openmpi || mpich

package main

import (
	"fmt"
	"os"

	"github.com/leidenzipper/zipper/internal/timerslack"
)

// keepCalm: a benchmark is to show what a C program gets, and the Go runtime would take a tenth of
// a core from the ranks.
func keepCalm() {
	if err := timerslack.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "zipper-mpibench: cannot set the timer slack (%v): the Go runtime's monitor disturbs the measurement\n",
			err)
	}
}

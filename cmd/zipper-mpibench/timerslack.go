//go:build openmpi || mpich

package main

import (
	"fmt"
	"os"

	"github.com/leidenzipper/zipper/internal/timerslack"
)

// raiseTimerSlack keeps the Go runtime from taking a tenth of a core from the ranks, because a
// benchmark has to show the speed of a C program.
func raiseTimerSlack() {
	if err := timerslack.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "zipper-mpibench: cannot set the timer slack (%v): the Go runtime's monitor disturbs the measurement\n",
			err)
	}
}

// Package npb has the NAS Parallel Benchmarks EP, IS, CG, MG, FT and LU in Go over package mmpi,
// written from the published specification (Bailey et al., NASA Ames RNR-94-007 and NAS-99-011;
// official verification values and counts of operations of release 3). A kernel runs on all
// processes of World and gives the same Result everywhere.
//
// Kernels need -tags openmpi or mpich; the parts without MPI (random numbers, the sparse matrix,
// the stencils of MG, the equations of LU, the official values of FT) are plain Go.
package npb

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Class is the size of the problem: 'S', 'W', 'A', 'B' or 'C'.
type Class byte

// ParseClass reads a class name.
func ParseClass(s string) (Class, error) {
	switch s {
	case "S", "W", "A", "B", "C":
		return Class(s[0]), nil
	}
	return 0, fmt.Errorf("npb: no class %q; choose S (sample), W (workstation), A, B or C", s)
}

func (c Class) String() string { return string(rune(c)) }

// Result is the result of one kernel.
type Result struct {
	Kernel   string  `json:"kernel"`
	Class    string  `json:"class"`
	Size     string  `json:"size"`
	Ranks    int     `json:"ranks"`
	Steps    int     `json:"iterations"`
	Seconds  float64 `json:"seconds"` // wall clock of the timed part, the slowest rank's
	Mops     float64 `json:"mops"`    // million operations per second, counted as NPB does
	Verified bool    `json:"verified"`
	Detail   string  `json:"detail"` // the verified figures against the official ones
}

// powerOfTwo returns the error of a kernel that cannot run on n ranks, with the rule of the
// original.
func powerOfTwo(kernel string, n int) error {
	if n&(n-1) != 0 {
		return fmt.Errorf("npb: %s runs on a power of two of ranks (1, 2, 4, 8 …), not on %d", kernel, n)
	}
	return nil
}

// names are those of the kernels.
var names = []string{"EP", "IS", "CG", "MG", "FT", "LU"}

// Check returns why the kernel of that name (any case) cannot run on so many ranks, or nil. Limits
// that depend on the class show when it runs.
func Check(kernel string, ranks int) error {
	name := strings.ToUpper(kernel)
	if !slices.Contains(names, name) {
		return fmt.Errorf("npb: no kernel %q; there are %s", kernel, strings.Join(names, ", "))
	}
	if name == "EP" {
		return nil
	}
	return powerOfTwo(name, ranks)
}

func log2(n int) int {
	l := 0
	for ; n > 1; n >>= 1 {
		l++
	}
	return l
}

// closeTo tells whether x equals the official value within the relative tolerance eps.
func closeTo(x, want, eps float64) bool { return math.Abs((x-want)/want) <= eps }

func seconds(since time.Time) float64 { return time.Since(since).Seconds() }

// String returns the result for users, in two lines.
func (r Result) String() string {
	return fmt.Sprintf("%s class %s, %s on %d ranks: %.3f s, %.1f Mop/s, verified: %v\n  %s", r.Kernel, r.Class, r.Size,
		r.Ranks, r.Seconds, r.Mops, r.Verified, r.Detail)
}

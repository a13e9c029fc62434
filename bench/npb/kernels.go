//go:build openmpi || mpich

package npb

import (
	"fmt"
	"strings"

	"github.com/leidenzipper/zipper/mmpi"
)

// Kernels by name.
var kernels = []struct {
	name string
	run  func(*mmpi.Process, Class) (Result, error)
}{{"EP", EP}, {"IS", IS}, {"CG", CG}, {"MG", MG}, {"FT", FT}, {"LU", LU}}

// Run runs the kernel of that name (any case) on all processes of World.
func Run(p *mmpi.Process, kernel string, class Class) (Result, error) {
	var names []string
	for _, k := range kernels {
		if strings.EqualFold(k.name, kernel) {
			return k.run(p, class)
		}
		names = append(names, k.name)
	}
	return Result{}, fmt.Errorf("npb: no kernel %q; there are %s", kernel, strings.Join(names, ", "))
}

//go:build openmpi || mpich

package npb

import (
	"strings"

	"github.com/leidenzipper/zipper/mmpi"
)

var kernels = map[string]func(*mmpi.Process, Class) (Result, error){"EP": EP, "IS": IS, "CG": CG, "MG": MG, "FT": FT,
	"LU": LU}

// Run runs the kernel of that name (any case) on all processes of World.
func Run(p *mmpi.Process, kernel string, class Class) (Result, error) {
	if err := Check(kernel, p.World().Size()); err != nil {
		return Result{}, err
	}
	return kernels[strings.ToUpper(kernel)](p, class)
}

package pattern

import (
	"fmt"
	"io"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/internal/traffic/rankfile"
)

// ReadRanks reads a plan of ranks on hosts (package rankfile), whose hosts must be those of
// platform p. It returns the host of each rank.
func ReadRanks(r io.Reader, p *platform.Platform) ([]string, error) {
	places, err := rankfile.Read(r)
	if err != nil {
		return nil, err
	}
	hosts := make([]string, len(places))
	for rank, at := range places {
		if !p.HasHost(at.Host) {
			return nil, fmt.Errorf("rank %d is on host %q, which the platform does not have", rank, at.Host)
		}
		hosts[rank] = at.Host
	}
	return hosts, nil
}

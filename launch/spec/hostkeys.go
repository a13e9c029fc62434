package spec

import (
	"maps"
	"slices"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

// AddHostKeys sets the missing keys of the job's zippers from the known keys in a file. With the
// policy accept-new it calls ask for unknown keys, and writes them to the file. With the policy
// strict a zipper whose key is unknown is an error.
func (j *Job) AddHostKeys(policy, file string, ask func(address string) (string, error)) error {
	known, err := jobenv.ReadKnown(file)
	if err != nil {
		return err
	}
	for i := range j.Zippers {
		z := &j.Zippers[i]
		addresses := slices.Sorted(maps.Values(z.Per))
		if z.Address != "" {
			addresses = append([]string{z.Address}, addresses...)
		}
		if z.HostKey == "" {
			z.HostKey = known.Of(addresses...)
		}
		if z.HostKey != "" || len(addresses) == 0 {
			continue
		}
		switch policy {
		case jobenv.StrictKey:
			return jobenv.UnknownKey(addresses[0])
		case jobenv.AcceptNew:
			plain := jobenv.Job{Forwarders: addresses[:1]}
			if err := plain.AskHostKeys(policy, file, ask); err != nil {
				return err
			}
			z.HostKey = plain.HostKeys[addresses[0]]
		}
	}
	return nil
}

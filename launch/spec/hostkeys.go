package spec

import (
	"maps"
	"slices"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

// AddHostKeys fills in the keys of zippers that the job does not give: from the known ones, or,
// with the policy accept-new, from what ask hears of them, which the file is to keep. With the
// policy strict a zipper whose key is not known is an error.
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
			return jobenv.NotKnown(addresses[0])
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

package forwarder

import (
	"crypto/ed25519"
	"encoding/hex"
	"os"
	"slices"

	"github.com/leidenzipper/zipper/forwarder/jobreport"
	"github.com/leidenzipper/zipper/forwarder/report"
	"github.com/leidenzipper/zipper/internal/wire"
)

// These types are the reports of a forwarder about itself and its jobs.
type (
	Status        = report.Status
	JobStatus     = report.JobStatus
	ClusterStatus = report.ClusterStatus
	TrunkStatus   = report.TrunkStatus
	LostCluster   = report.LostCluster
	Totals        = report.Totals
	Memory        = report.Memory
	Summary       = report.Summary
	Traffic       = report.Traffic
	KernelTraffic = report.KernelTraffic
)

// Status returns the present state of the forwarder and its jobs. Safe for concurrent use.
func (f *Forwarder) Status() Status {
	s, all := f.ownStatus()
	for _, r := range all {
		r.mu.Lock()
		s.Jobs = append(s.Jobs, r.status())
		r.mu.Unlock()
	}
	s.Totals = s.Totals.With(s.Jobs)
	s.Memory = Memory{Used: f.memory.Used(), Limit: f.memory.Limit()}
	return s
}

// ownStatus returns the forwarder's status without its jobs, and the jobs that have not ended.
func (f *Forwarder) ownStatus() (Status, []*runner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Protocol: wire.Version, PID: os.Getpid(), Config: f.cfg.File, Draining: f.drain.on, Started: f.born,
		Now: f.cfg.clock.Now(), Loops: f.cfg.Loops, NAT: f.cfg.NAT != nil, NATOff: f.cfg.NATOff,
		NATFailure: f.opened.Failure(), Links: len(f.peers), Jobs: []JobStatus{}, Past: slices.Clone(f.past), Addresses: []string{}}
	if k := f.cfg.HostKey; k != nil {
		s.HostKey = wire.FormatHostKey([wire.PublicKeyLen]byte(k.Public().(ed25519.PublicKey)))
	}
	for _, l := range f.cfg.Listeners {
		s.Addresses = append(s.Addresses, l.Addr())
	}
	s.Totals = f.totals.With(nil)
	return s, f.jobs.InOrder()
}

// status returns the state of the job for the forwarder's Status. With the lock.
func (r *runner) status() JobStatus {
	s := jobreport.Status(r.job, r.plane, r.carrier)
	s.Job, s.Key, s.User = r.id, hex.EncodeToString(r.key[:8]), r.user
	return s
}

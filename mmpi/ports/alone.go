package ports

import (
	"errors"

	"github.com/leidenzipper/zipper/mmpi/engine"
)

// alone is engine.Native of a process that has no native MPI for an engine: one of a meeting is the
// only one of its cluster, and asks nothing of it. An engine that fails says so to whoever waits.
type alone struct{}

var errAlone = errors.New("no native MPI")

func (alone) Improbe(*engine.Comm, int, int) (engine.Probe, bool, error) {
	return engine.Probe{}, false, nil
}
func (alone) Iprobe(*engine.Comm, int, int) (engine.Probe, bool, error) {
	return engine.Probe{}, false, nil
}
func (alone) Imrecv(*engine.Request, uint64) error              { return errAlone }
func (alone) Irecv(*engine.Request) error                       { return errAlone }
func (alone) Test(*engine.Request) (bool, error)                { return true, errAlone }
func (alone) Cancel(*engine.Request) error                      { return errAlone }
func (alone) Coll(*engine.Comm, *engine.Coll) (uint64, error)   { return 0, errAlone }
func (alone) CollTest(uint64) (bool, error)                     { return true, errAlone }
func (alone) ReduceLocal(_, _ []byte, _ int, _, _ uint64) error { return errAlone }
func (alone) Compute(_, _ uint8, _, _ []byte) error             { return errAlone }
func (alone) SetActivity(engine.Activity)                       {}
func (alone) Fail(int, string)                                  {}

package transfer

import (
	"errors"

	"github.com/leidenzipper/zipper/mmpi/engine"
)

// alone is an engine's native MPI where there is none: no message is ever in this cluster.
type alone struct{ fail func(reason string) }

var errAlone = errors.New("there is no native MPI here")

func (alone) Improbe(*engine.Comm, int, int) (engine.Probe, bool, error) {
	return engine.Probe{}, false, nil
}
func (alone) Iprobe(*engine.Comm, int, int) (engine.Probe, bool, error) {
	return engine.Probe{}, false, nil
}
func (alone) Imrecv(*engine.Request, uint64) error                  { return errAlone }
func (alone) Irecv(*engine.Request) error                           { return errAlone }
func (alone) Test(*engine.Request) (bool, error)                    { return false, errAlone }
func (alone) Cancel(*engine.Request) error                          { return errAlone }
func (alone) Coll(*engine.Comm, *engine.Coll) (uint64, error)       { return 0, errAlone }
func (alone) CollTest(uint64) (bool, error)                         { return false, errAlone }
func (alone) ReduceLocal([]byte, []byte, int, uint64, uint64) error { return errAlone }
func (alone) Compute(uint8, uint8, []byte, []byte) error            { return errAlone }
func (alone) SetActivity(engine.Activity)                           {}
func (a alone) Fail(_ int, reason string)                           { a.fail(reason) }

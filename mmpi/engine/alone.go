package engine

import "errors"

// Alone is the Native of a process that has no native MPI and is the only process of its cluster,
// so that no message is ever in its cluster. Calls that need native MPI fail. Failed, if not nil,
// is called with the reason when the engine has failed.
type Alone struct{ Failed func(reason string) }

var errAlone = errors.New("there is no native MPI here")

func (Alone) Improbe(*Comm, int, int) (Probe, bool, error)          { return Probe{}, false, nil }
func (Alone) Iprobe(*Comm, int, int) (Probe, bool, error)           { return Probe{}, false, nil }
func (Alone) Imrecv(*Request, uint64) error                         { return errAlone }
func (Alone) Irecv(*Request) error                                  { return errAlone }
func (Alone) Test(*Request) (bool, error)                           { return true, errAlone }
func (Alone) Cancel(*Request) error                                 { return errAlone }
func (Alone) Coll(*Comm, *Coll) (uint64, error)                     { return 0, errAlone }
func (Alone) CollTest(uint64) (bool, error)                         { return true, errAlone }
func (Alone) ReduceLocal([]byte, []byte, int, uint64, uint64) error { return errAlone }
func (Alone) Recode([]byte, int, uint64, bool) error                { return errAlone }
func (Alone) RecodeNumbers(uint8, []byte, bool)                     {}
func (Alone) Compute(uint8, uint8, []byte, []byte) error            { return errAlone }
func (Alone) SetActivity(Activity)                                  {}
func (Alone) Access(BadMemory)                                      {}

// Fail calls Failed.
func (a Alone) Fail(_ int, reason string) {
	if a.Failed != nil {
		a.Failed(reason)
	}
}

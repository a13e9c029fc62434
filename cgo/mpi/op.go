//go:build openmpi || mpich

package mpi

// #include "binding.h"
import "C"

import (
	"errors"
	"sync"
	"unsafe"
)

// Reducer computes inout[i] = in[i] op inout[i] for n elements.
type Reducer func(in, inout unsafe.Pointer, n int)

// reducers are the functions of user operators. MPI passes no user data to an operator's function,
// so the functions are in a table of the process, as in MPI itself, with one C trampoline for each
// slot.
var reducers struct {
	sync.Mutex
	slot [C.B_OP_SLOTS]Reducer
}

// UserOp is an operator made by NewOp.
type UserOp struct {
	Op   Op
	slot int
}

// ErrTooManyOps is the error of NewOp while 16 operators exist: one must be freed first.
var ErrTooManyOps = errors.New("mpi: too many user-defined operators at once (16 are possible)")

// NewOp is MPI_Op_create.
func NewOp(f Reducer, commutative bool) (*UserOp, error) {
	reducers.Lock()
	defer reducers.Unlock()
	for i := range reducers.slot {
		if reducers.slot[i] == nil {
			var h C.uintptr_t
			if err := check("MPI_Op_create", C.b_op_create(C.int(i), flag(commutative), &h)); err != nil {
				return nil, err
			}
			reducers.slot[i] = f
			return &UserOp{Op(h), i}, nil
		}
	}
	return nil, ErrTooManyOps
}

// Free is MPI_Op_free.
func (o *UserOp) Free() error {
	reducers.Lock()
	defer reducers.Unlock()
	h := o.Op.h()
	err := check("MPI_Op_free", C.b_op_free(&h))
	if err == nil {
		reducers.slot[o.slot] = nil
	}
	return err
}

//export goReduce
func goReduce(slot C.int, in, inout unsafe.Pointer, n C.int) {
	reducers.Lock()
	f := reducers.slot[slot]
	reducers.Unlock()
	f(in, inout, int(n))
}

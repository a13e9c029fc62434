//go:build openmpi || mpich

package mmpi

import (
	"fmt"
	"unsafe"

	"github.com/leidenzipper/zipper/cgo/mpi"
)

// Op combines elements in reductions: one of the predefined operators below or one made by NewOp.
type Op struct {
	predefined int
	user       *mpi.UserOp
	elem       mpi.DataType // element type of a user operator
}

// These are the predefined operators. The logical and bitwise ones are for integers; Min and Max
// are not for complex numbers.
var (
	Sum  = Op{predefined: mpi.Sum}
	Prod = Op{predefined: mpi.Prod}
	Min  = Op{predefined: mpi.Min}
	Max  = Op{predefined: mpi.Max}
	LAnd = Op{predefined: mpi.LAnd}
	LOr  = Op{predefined: mpi.LOr}
	LXor = Op{predefined: mpi.LXor}
	BAnd = Op{predefined: mpi.BAnd}
	BOr  = Op{predefined: mpi.BOr}
	BXor = Op{predefined: mpi.BXor}
)

// NewOp creates an operator for elements of type T from an associative function: f sets inout[i] to
// in[i] op inout[i]. commutative says whether the operator commutes; if it does not, the order of
// ranks is kept. At most 16 operators can exist at once, so those no longer needed should be freed.
// f may be called from any thread and must not call MPI.
func NewOp[T Scalar](f func(in, inout []T), commutative bool) (Op, error) {
	u, err := mpi.NewOp(func(in, inout unsafe.Pointer, n int) {
		f(unsafe.Slice((*T)(in), n), unsafe.Slice((*T)(inout), n))
	}, commutative)
	return Op{user: u, elem: datatype[T]()}, err
}

// Free frees a user operator. All reductions with it must have finished.
func (o Op) Free() error {
	if o.user == nil {
		return fmt.Errorf("mmpi: a predefined operator cannot be freed")
	}
	return o.user.Free()
}

// handle returns the MPI operator, and checks that it is for elements of that type.
func (o Op) handle(t mpi.DataType) (mpi.Op, error) {
	if o.user == nil {
		return mpi.PredefinedOp(o.predefined), nil
	}
	if o.elem != t {
		return 0, fmt.Errorf("mmpi: the operator was made for another type of element")
	}
	return o.user.Op, nil
}

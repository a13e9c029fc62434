//go:build openmpi || mpich

package mmpi

import (
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/leidenzipper/zipper/cgo/mpi"
)

// Scalar is an element of a message. int and uint are sent as 64 bits.
type Scalar interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// kinds maps Go's kinds to MPI's types. A named type is sent as its underlying type.
var kinds = [...]int{
	reflect.Int: mpi.Int64, reflect.Int8: mpi.Int8, reflect.Int16: mpi.Int16,
	reflect.Int32: mpi.Int32, reflect.Int64: mpi.Int64,
	reflect.Uint: mpi.Uint64, reflect.Uint8: mpi.Uint8, reflect.Uint16: mpi.Uint16,
	reflect.Uint32: mpi.Uint32, reflect.Uint64: mpi.Uint64,
	reflect.Float32: mpi.Float32, reflect.Float64: mpi.Float64,
	reflect.Complex64: mpi.Complex64, reflect.Complex128: mpi.Complex128,
}

func datatype[T Scalar]() mpi.DataType { return mpi.Type(kinds[reflect.TypeFor[T]().Kind()]) }

// buffer describes a slice to MPI. A slice that is too long is an error.
func buffer[T Scalar](s []T) (mpi.Buffer, error) {
	if len(s) > math.MaxInt32 {
		return mpi.Buffer{}, fmt.Errorf("mmpi: %d elements in one call, at most %d are possible", len(s), math.MaxInt32)
	}
	b := mpi.Buffer{N: len(s), Type: datatype[T]()}
	if len(s) > 0 {
		b.P = unsafe.Pointer(unsafe.SliceData(s))
	}
	return b, nil
}

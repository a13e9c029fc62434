//go:build rdma && cgo

package verbs

/*
#include <infiniband/verbs.h>

static struct ibv_mr *zv_reg(struct ibv_pd *pd, void *p, size_t n, int access) { return ibv_reg_mr(pd, p, n, access); }
*/
import "C"

import (
	"fmt"
	"syscall"
	"unsafe"
)

// PD is a protection domain.
type PD struct{ p *C.struct_ibv_pd }

// NewPD makes a protection domain.
func (x *Context) NewPD() (*PD, error) {
	p, err := C.ibv_alloc_pd(x.c)
	if p == nil {
		return nil, failed("allocate protection domain on "+x.name, err)
	}
	return &PD{p}, nil
}

// Close frees the domain.
func (p *PD) Close() error {
	if rc := C.ibv_dealloc_pd(p.p); rc != 0 {
		return failed("free protection domain", syscall.Errno(rc))
	}
	return nil
}

// Access is the set of accesses to registered memory that are allowed in addition to local reading.
type Access int

const (
	LocalWrite  Access = C.IBV_ACCESS_LOCAL_WRITE
	RemoteWrite Access = C.IBV_ACCESS_REMOTE_WRITE
	RemoteRead  Access = C.IBV_ACCESS_REMOTE_READ
)

// MR is registered memory.
type MR struct {
	m   *C.struct_ibv_mr
	mem []byte
}

// Register pins mem, which must be neither Go's memory (see the package's comment) nor empty.
func (p *PD) Register(mem []byte, a Access) (*MR, error) {
	if len(mem) == 0 {
		return nil, fmt.Errorf("register memory: empty")
	}
	m, err := C.zv_reg(p.p, unsafe.Pointer(unsafe.SliceData(mem)), C.size_t(len(mem)), C.int(a))
	if m == nil {
		return nil, failed(fmt.Sprintf("register %d bytes of memory", len(mem)), err)
	}
	return &MR{m, mem}, nil
}

// Close unpins the memory.
func (m *MR) Close() error {
	if rc := C.ibv_dereg_mr(m.m); rc != 0 {
		return failed("deregister memory", syscall.Errno(rc))
	}
	return nil
}

// Bytes returns the memory.
func (m *MR) Bytes() []byte { return m.mem }

// RKey returns the key by which a peer may read or write the memory, Addr the address that the peer
// uses.
func (m *MR) RKey() uint32 { return uint32(m.m.rkey) }
func (m *MR) Addr() uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.mem)))) }

// Range is a part of registered memory. The zero value is empty.
type Range struct {
	MR       *MR
	Off, Len int // bytes
}

// sge returns address, length and key, after checking the bounds.
func (r Range) sge() (C.uint64_t, C.uint32_t, C.uint32_t) {
	if r.Len == 0 {
		return 0, 0, 0
	}
	_ = r.MR.mem[r.Off : r.Off+r.Len]
	return C.uint64_t(r.MR.Addr() + uint64(r.Off)), C.uint32_t(r.Len), C.uint32_t(r.MR.m.lkey)
}

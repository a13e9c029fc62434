//go:build rdma && cgo

package verbs

/*
#cgo LDFLAGS: -libverbs
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <infiniband/verbs.h>

static int zv_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *a) { return ibv_query_port(c, port, a); }
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Built reports whether the bindings are in this program.
const Built = true

// forkInit makes registered memory safe against fork, once for the process, unless the kernel does
// so: the library (44 at least) would then still keep registered pages from children.
var forkInit = sync.OnceValue(func() error {
	if ForkCopies() {
		return nil
	}
	rc := C.ibv_fork_init()
	if rc == 0 {
		return nil
	}
	// The call fails if other code (an MPI library) has registered memory before. That is fine if
	// that code has made the call itself.
	if C.ibv_is_fork_initialized() != C.IBV_FORK_DISABLED {
		return nil
	}
	return fmt.Errorf("ibv_fork_init: %w: memory was registered before; set RDMAV_FORK_SAFE=1 in the job's environment", syscall.Errno(rc))
})

// ForkCopies reports whether the kernel copies pinned pages for a child after fork, so that
// registered memory is safe, and the child has all of its own memory. Otherwise the library has to
// keep registered pages from children, with all data on them (ibv_fork_init).
func ForkCopies() bool { return forkCopies() }

var forkCopies = sync.OnceValue(func() bool { return C.ibv_is_fork_initialized() == C.IBV_FORK_UNNEEDED })

// Devices returns the names of this host's RDMA devices.
func Devices() ([]string, error) {
	l, err := listDevices()
	if err != nil {
		return nil, err
	}
	defer l.free()
	var names []string
	for _, d := range l.devices {
		names = append(names, C.GoString(C.ibv_get_device_name(d)))
	}
	return names, nil
}

type deviceList struct {
	head    **C.struct_ibv_device
	devices []*C.struct_ibv_device
}

func listDevices() (deviceList, error) {
	var n C.int
	head, err := C.ibv_get_device_list(&n)
	if errors.Is(err, syscall.ENOSYS) && head == nil {
		return deviceList{}, fmt.Errorf("this host has no RDMA device, nor the kernel module ib_uverbs (is the adapter's driver loaded?): %w", err)
	}
	if head == nil {
		return deviceList{}, failed("ibv_get_device_list", err)
	}
	return deviceList{head, unsafe.Slice(head, int(n))}, nil
}

func (l deviceList) free() { C.ibv_free_device_list(l.head) }

// Context is an open device.
type Context struct {
	c    *C.struct_ibv_context
	name string
}

// Open opens the device with this name.
func Open(name string) (*Context, error) {
	if err := forkInit(); err != nil {
		return nil, err
	}
	l, err := listDevices()
	if err != nil {
		return nil, err
	}
	defer l.free()
	for _, d := range l.devices {
		if C.GoString(C.ibv_get_device_name(d)) != name {
			continue
		}
		c, err := C.ibv_open_device(d)
		if c == nil {
			return nil, failed("open device "+name, err)
		}
		x := &Context{c, name}
		if err := unix.SetNonblock(x.AsyncFD(), true); err != nil {
			return nil, errors.Join(fmt.Errorf("device %s: %w", name, err), x.Close())
		}
		return x, nil
	}
	return nil, fmt.Errorf("there is no RDMA device %s on this host", name)
}

// Name is the device's name.
func (x *Context) Name() string { return x.name }

// Close closes the device; all objects made from it must have been closed.
func (x *Context) Close() error {
	if rc, err := C.ibv_close_device(x.c); rc != 0 {
		return failed("close device "+x.name, err)
	}
	return nil
}

// DeviceAttr is the limits of a device.
type DeviceAttr struct {
	Ports                        int
	MaxQP, MaxQPWR, MaxCQ, MaxMR int
	MaxCQE, MaxSRQ, MaxSGE       int
	Firmware                     string
	// Soft is true for soft-RoCE, Linux's rdma_rxe, which has no adapter.
	Soft bool
}

const softVendor = 0xffffff // the vendor of rdma_rxe; adapters have their makers' OUI

// Query returns the device's limits.
func (x *Context) Query() (DeviceAttr, error) {
	var a C.struct_ibv_device_attr
	if rc := C.ibv_query_device(x.c, &a); rc != 0 {
		return DeviceAttr{}, failed("query device "+x.name, syscall.Errno(rc))
	}
	return DeviceAttr{Ports: int(a.phys_port_cnt), MaxQP: int(a.max_qp), MaxQPWR: int(a.max_qp_wr), MaxCQ: int(a.max_cq), MaxMR: int(a.max_mr),
		MaxCQE: int(a.max_cqe), MaxSRQ: int(a.max_srq), MaxSGE: int(a.max_sge), Firmware: C.GoString(&a.fw_ver[0]), Soft: a.vendor_id == softVendor}, nil
}

// LinkLayer is the link layer of a port.
type LinkLayer uint8

const (
	InfiniBand LinkLayer = C.IBV_LINK_LAYER_INFINIBAND
	Ethernet   LinkLayer = C.IBV_LINK_LAYER_ETHERNET // RoCE
)

// MTU is a path MTU in the encoding of the verbs: 1 is 256 bytes, 5 is 4096.
type MTU uint8

// PortAttr is the state of a port.
type PortAttr struct {
	Active bool
	// State is that of the logical port: PORT_ACTIVE, PORT_DOWN …
	State     string
	LinkLayer LinkLayer
	LID       uint16 // LID is 0 on Ethernet.
	SMLID     uint16
	ActiveMTU MTU
	GIDs      int // GIDs is the length of the GID table.
	PKeys     int // PKeys is the length of the partition key table.
}

// QueryPort returns the state of a port, counted from 1.
func (x *Context) QueryPort(port int) (PortAttr, error) {
	var a C.struct_ibv_port_attr
	if rc := C.zv_query_port(x.c, C.uint8_t(port), &a); rc != 0 {
		return PortAttr{}, failed(fmt.Sprintf("query device %s port %d", x.name, port), syscall.Errno(rc))
	}
	layer := LinkLayer(a.link_layer)
	if a.link_layer == C.IBV_LINK_LAYER_UNSPECIFIED { // old drivers, all of InfiniBand
		layer = InfiniBand
	}
	return PortAttr{Active: a.state == C.IBV_PORT_ACTIVE, State: C.GoString(C.ibv_port_state_str(a.state)), LinkLayer: layer, LID: uint16(a.lid), SMLID: uint16(a.sm_lid),
		ActiveMTU: MTU(a.active_mtu), GIDs: int(a.gid_tbl_len), PKeys: int(a.pkey_tbl_len)}, nil
}

// GID is a port's global identifier: 8 bytes subnet prefix, 8 bytes interface; on RoCE an IP
// address.
type GID [16]byte

// GIDType is the kind of a GID table entry.
type GIDType uint8

const (
	GIDInfiniBand GIDType = C.IBV_GID_TYPE_IB
	GIDRoCEv1     GIDType = C.IBV_GID_TYPE_ROCE_V1
	GIDRoCEv2     GIDType = C.IBV_GID_TYPE_ROCE_V2
)

// GIDEntry is one entry of a port's GID table.
type GIDEntry struct {
	Index     int
	GID       GID
	Type      GIDType
	Interface int // Interface is the index of the network interface, or 0 if there is none.
}

// GIDs returns the entries of a port's GID table that are set.
func (x *Context) GIDs(port int) ([]GIDEntry, error) {
	a, err := x.QueryPort(port)
	if err != nil {
		return nil, err
	}
	var out []GIDEntry
	if a.GIDs == 0 {
		return out, nil
	}
	ports, err := x.Query()
	if err != nil {
		return nil, err
	}
	// One call returns the entries of all ports, because the tables have up to a thousand places.
	n := C.size_t(a.GIDs * max(ports.Ports, 1))
	table := (*C.struct_ibv_gid_entry)(C.calloc(n, C.sizeof_struct_ibv_gid_entry))
	defer C.free(unsafe.Pointer(table))
	got := C._ibv_query_gid_table(x.c, table, n, 0, C.sizeof_struct_ibv_gid_entry)
	if got < 0 {
		return nil, failed(fmt.Sprintf("query device %s GIDs", x.name), syscall.Errno(-got))
	}
	for _, e := range unsafe.Slice(table, int(got)) {
		if int(e.port_num) == port {
			out = append(out, GIDEntry{int(e.gid_index), GID(*(*[16]byte)(unsafe.Pointer(&e.gid))), GIDType(e.gid_type), int(e.ndev_ifindex)})
		}
	}
	return out, nil
}

// PKey returns the partition key at an index of a port's table.
func (x *Context) PKey(port, index int) (uint16, error) {
	var k C.__be16
	if rc, err := C.ibv_query_pkey(x.c, C.uint8_t(port), C.int(index), &k); rc != 0 {
		return 0, failed(fmt.Sprintf("query device %s port %d partition key %d", x.name, port, index), err)
	}
	b := (*[2]byte)(unsafe.Pointer(&k))
	return uint16(b[0])<<8 | uint16(b[1]), nil
}

// failed returns an error for an operation. errno may be nil if the library has set none.
func failed(what string, errno error) error {
	if errno == nil {
		errno = syscall.EIO
	}
	if errors.Is(errno, syscall.ENOMEM) || errors.Is(errno, syscall.EAGAIN) {
		return &LockedMemoryError{what, errno, lockLimit()}
	}
	return fmt.Errorf("%s: %w", what, errno)
}

// LockedMemoryError reports that the limit of locked memory is, most likely, too low.
type LockedMemoryError struct {
	What string
	Err  error
	// Limit is the limit in force: KiB or "unlimited", as ulimit -l prints it.
	Limit string
}

func (e *LockedMemoryError) Error() string {
	if e.Limit == "unlimited" {
		return fmt.Sprintf("%s: %v (locked memory is not limited, so the device or the host has run out: fewer links, or smaller rings)", e.What, e.Err)
	}
	return fmt.Sprintf("%s: %v: the limit of locked memory, ulimit -l, is %s KiB: raise it (memlock in /etc/security/limits.conf, LimitMEMLOCK=infinity in a service file)", e.What, e.Err, e.Limit)
}

func (e *LockedMemoryError) Unwrap() error { return e.Err }

// Local returns true: the cause is on this host, not at the peer.
func (e *LockedMemoryError) Local() bool { return true }

func lockLimit() string {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil {
		return "unknown"
	}
	if r.Cur == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return fmt.Sprint(r.Cur >> 10)
}

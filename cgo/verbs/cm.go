//go:build rdma && cgo

package verbs

/*
#cgo LDFLAGS: -lrdmacm
#include <errno.h>
#include <string.h>
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

struct zv_cm {
	int type, status;
	struct rdma_cm_id *id;
	uint32_t qpn;
	uint8_t len, data[255];
};

// zv_cm_event takes one event, copies it and acknowledges it: 1, 0 when there is none, or -errno.
static int zv_cm_event(struct rdma_event_channel *ch, struct zv_cm *out) {
	struct rdma_cm_event *e;
	if (rdma_get_cm_event(ch, &e) != 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	out->type = e->event;
	out->status = e->status;
	out->id = e->id;
	out->qpn = 0;
	out->len = 0;
	switch (e->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST: case RDMA_CM_EVENT_CONNECT_RESPONSE: case RDMA_CM_EVENT_REJECTED: case RDMA_CM_EVENT_ESTABLISHED:
		out->qpn = e->param.conn.qp_num;
		if (e->param.conn.private_data) {
			out->len = e->param.conn.private_data_len;
			memcpy(out->data, e->param.conn.private_data, out->len);
		}
		break;
	default:
		break;
	}
	return rdma_ack_cm_event(e) != 0 ? -errno : 1;
}

union zv_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static void zv_sockaddr(union zv_sockaddr *a, const uint8_t *ip, int v6, uint16_t port, uint32_t scope) {
	memset(a, 0, sizeof *a);
	if (v6) {
		a->in6.sin6_family = AF_INET6;
		a->in6.sin6_port = htons(port);
		a->in6.sin6_scope_id = scope;
		memcpy(&a->in6.sin6_addr, ip, 16);
	} else {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons(port);
		memcpy(&a->in.sin_addr, ip, 4);
	}
}

// zv_cm_addr gives one end's address: length in bytes, 0 if it is of another family.
static int zv_cm_addr(struct rdma_cm_id *id, int peer, uint8_t *ip, uint16_t *port) {
	struct sockaddr *a = peer ? rdma_get_peer_addr(id) : rdma_get_local_addr(id);
	*port = ntohs(peer ? rdma_get_dst_port(id) : rdma_get_src_port(id));
	switch (a->sa_family) {
	case AF_INET:
		memcpy(ip, &((struct sockaddr_in *)a)->sin_addr, 4);
		return 4;
	case AF_INET6:
		memcpy(ip, &((struct sockaddr_in6 *)a)->sin6_addr, 16);
		return 16;
	default:
		return 0;
	}
}

static int zv_cm_bind(struct rdma_cm_id *id, union zv_sockaddr a) { return rdma_bind_addr(id, &a.sa); }
static int zv_cm_resolve(struct rdma_cm_id *id, union zv_sockaddr a, int ms) { return rdma_resolve_addr(id, NULL, &a.sa, ms); }

// zv_cm_answer connects or accepts. Reads and atomics: as many as QP.Connect allows.
static int zv_cm_answer(struct rdma_cm_id *id, int connect, uint32_t qpn, const void *data, uint8_t n) {
	struct rdma_conn_param p = { .private_data = data, .private_data_len = n, .responder_resources = 1, .initiator_depth = 1,
		.retry_count = 7, .rnr_retry_count = 7, .qp_num = qpn };
	return connect ? rdma_connect(id, &p) : rdma_accept(id, &p);
}

static int zv_cm_reject(struct rdma_cm_id *id, const void *data, uint8_t n) { return rdma_reject(id, data, n); }
*/
import "C"

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CMFile is the device file of the communication manager.
const CMFile = "/dev/infiniband/rdma_cm"

// The sizes in bytes of the private data in messages of the communication manager, on InfiniBand
// and RoCE. The data arrive padded with zeros.
const (
	MaxConnectData = 56
	MaxAcceptData  = 196
	MaxRejectData  = 148
)

// CMChannel signals the events of its CMs through a descriptor.
type CMChannel struct{ ch *C.struct_rdma_event_channel }

// NewCMChannel makes a channel whose descriptor does not block. If this host has no communication
// manager the error names what is missing.
func NewCMChannel() (*CMChannel, error) {
	if err := forkInit(); err != nil {
		return nil, err
	}
	if err := reachable(CMFile); err != nil { // otherwise the library reports less
		return nil, err
	}
	ch, err := C.rdma_create_event_channel()
	if ch == nil {
		return nil, cmFailed("create an event channel", err)
	}
	c := &CMChannel{ch}
	if err := unix.SetNonblock(c.FD(), true); err != nil {
		c.Close()
		return nil, fmt.Errorf("connection manager's event channel: %w", err)
	}
	return c, nil
}

// reachable returns an error with the remedy if the file does not exist or this user may not open
// it.
func reachable(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("connection manager: %w: users need read and write access to it (rdma-core's udev rules give it)", err)
	}
	return fmt.Errorf("connection manager: %w: load the kernel module rdma_ucm (modprobe rdma_ucm), or connect without it", err)
}

// FD returns a descriptor that is readable while an event is queued.
func (c *CMChannel) FD() int { return int(c.ch.fd) }

// Close frees the channel; no CM may use it any more.
func (c *CMChannel) Close() { C.rdma_destroy_event_channel(c.ch) }

// CMEventType is the kind of an event.
type CMEventType int

const (
	AddrResolved    CMEventType = C.RDMA_CM_EVENT_ADDR_RESOLVED
	AddrError       CMEventType = C.RDMA_CM_EVENT_ADDR_ERROR
	RouteResolved   CMEventType = C.RDMA_CM_EVENT_ROUTE_RESOLVED
	RouteError      CMEventType = C.RDMA_CM_EVENT_ROUTE_ERROR
	ConnectRequest  CMEventType = C.RDMA_CM_EVENT_CONNECT_REQUEST
	ConnectResponse CMEventType = C.RDMA_CM_EVENT_CONNECT_RESPONSE
	ConnectError    CMEventType = C.RDMA_CM_EVENT_CONNECT_ERROR
	Unreachable     CMEventType = C.RDMA_CM_EVENT_UNREACHABLE
	Rejected        CMEventType = C.RDMA_CM_EVENT_REJECTED
	Established     CMEventType = C.RDMA_CM_EVENT_ESTABLISHED
	Disconnected    CMEventType = C.RDMA_CM_EVENT_DISCONNECTED
	DeviceRemoval   CMEventType = C.RDMA_CM_EVENT_DEVICE_REMOVAL
)

func (t CMEventType) String() string {
	return C.GoString(C.rdma_event_str(C.enum_rdma_cm_event_type(t)))
}

// The values of Status in a Rejected event, on InfiniBand and RoCE, that are used here.
const (
	RejectNoListener = 8  // no listener at that port
	RejectByProgram  = 28 // by CM.Reject, with its data
)

// CMEvent is an event of a CM.
type CMEvent struct {
	Type   CMEventType
	Status int // Status is 0, a negative errno, or the reason of Rejected.
	// QPN is the peer's queue pair, in ConnectRequest, ConnectResponse, Rejected and Established.
	QPN uint32
	// Data is the peer's private data, padded with zeros, in the same events.
	Data []byte
	// New, in a ConnectRequest, is the new connection, on the channel of the listening CM. The
	// caller owns it.
	New *CM
}

// Event removes an event from the queue and returns true, or false if there is none. It does not
// block.
func (c *CMChannel) Event() (CMEvent, bool, error) {
	var e C.struct_zv_cm
	switch n := C.zv_cm_event(c.ch, &e); {
	case n < 0:
		return CMEvent{}, false, cmFailed("get an event", syscall.Errno(-n))
	case n == 0:
		return CMEvent{}, false, nil
	}
	v := CMEvent{Type: CMEventType(e._type), Status: int(e.status), QPN: uint32(e.qpn), Data: C.GoBytes(unsafe.Pointer(&e.data), C.int(e.len))}
	if v.Type == ConnectRequest {
		v.New = &CM{e.id}
	}
	return v, true, nil
}

// CM is a connection of the communication manager, or a listener. It has no queue pair of its own:
// the caller's is connected with QP.InitBy and QP.ConnectBy. The dialing end calls ResolveAddr,
// ResolveRoute, Connect and Establish, and the other end calls Accept, each after the event that
// ends the previous step.
type CM struct{ id *C.struct_rdma_cm_id }

// NewCM makes a CM in the port space of reliable connections, which is separate from TCP's ports.
func (c *CMChannel) NewCM() (*CM, error) {
	m := &CM{}
	if rc, err := C.rdma_create_id(c.ch, &m.id, nil, C.RDMA_PS_TCP); rc != 0 {
		return nil, cmFailed("create a connection", err)
	}
	return m, nil
}

// Migrate moves the CM to another channel, with the events that have not been removed. No thread
// may be in Event of the old channel.
func (m *CM) Migrate(to *CMChannel) error {
	if rc, err := C.rdma_migrate_id(m.id, to.ch); rc != 0 {
		return cmFailed("migrate connection to another channel", err)
	}
	return nil
}

// Bind chooses the local address, and by it the device. An unspecified address stands for all
// addresses, and port 0 for any free one.
func (m *CM) Bind(a netip.AddrPort) error {
	s, err := sockaddr(a)
	if err != nil {
		return err
	}
	if rc, err := C.zv_cm_bind(m.id, s); rc != 0 {
		return cmFailed("bind to "+a.String(), err)
	}
	return nil
}

// Listen lets ConnectRequest events arrive, of which backlog may be queued.
func (m *CM) Listen(backlog int) error {
	if rc, err := C.rdma_listen(m.id, C.int(backlog)); rc != 0 {
		return cmFailed("listen", err)
	}
	return nil
}

// ResolveAddr finds the device and port by which IP routing reaches a, and the owner of that
// address there. The event is AddrResolved or AddrError.
func (m *CM) ResolveAddr(a netip.AddrPort, limit time.Duration) error {
	s, err := sockaddr(a)
	if err != nil {
		return err
	}
	if rc, err := C.zv_cm_resolve(m.id, s, C.int(limit.Milliseconds())); rc != 0 {
		return cmFailed("resolve address "+a.String(), err)
	}
	return nil
}

// ResolveRoute asks the subnet manager for the path (RoCE has no subnet manager). The event is
// RouteResolved or RouteError.
func (m *CM) ResolveRoute(limit time.Duration) error {
	if rc, err := C.rdma_resolve_route(m.id, C.int(limit.Milliseconds())); rc != 0 {
		return cmFailed("resolve route", err)
	}
	return nil
}

// Connect requests a connection from the peer for the queue pair qpn, with at most MaxConnectData
// bytes. The event is ConnectResponse, Rejected or Unreachable.
func (m *CM) Connect(qpn uint32, data []byte) error {
	if len(data) > MaxConnectData {
		return tooLong(data, MaxConnectData)
	}
	if rc, err := C.zv_cm_answer(m.id, 1, C.uint32_t(qpn), unsafe.Pointer(unsafe.SliceData(data)), C.uint8_t(len(data))); rc != 0 {
		return cmFailed("connect", err)
	}
	return nil
}

// Accept accepts a ConnectRequest with a queue pair that is ready to receive, and at most
// MaxAcceptData bytes. The event is Established, once the peer is ready too.
func (m *CM) Accept(qpn uint32, data []byte) error {
	if len(data) > MaxAcceptData {
		return tooLong(data, MaxAcceptData)
	}
	if rc, err := C.zv_cm_answer(m.id, 0, C.uint32_t(qpn), unsafe.Pointer(unsafe.SliceData(data)), C.uint8_t(len(data))); rc != 0 {
		return cmFailed("accept a connection", err)
	}
	return nil
}

// Establish answers a ConnectResponse: the local queue pair is ready.
func (m *CM) Establish() error {
	if rc, err := C.rdma_establish(m.id); rc != 0 {
		return cmFailed("establish a connection", err)
	}
	return nil
}

// Reject rejects a ConnectRequest or ConnectResponse, with at most MaxRejectData bytes.
func (m *CM) Reject(data []byte) error {
	if len(data) > MaxRejectData {
		return tooLong(data, MaxRejectData)
	}
	if rc, err := C.zv_cm_reject(m.id, unsafe.Pointer(unsafe.SliceData(data)), C.uint8_t(len(data))); rc != 0 {
		return cmFailed("reject a connection", err)
	}
	return nil
}

// Disconnect ends a connection, or acknowledges that the peer has ended it. The event at both ends
// is Disconnected.
func (m *CM) Disconnect() error {
	if rc, err := C.rdma_disconnect(m.id); rc != 0 {
		return cmFailed("disconnect", err)
	}
	return nil
}

// Close frees the CM. The peer of a connection is notified; a lost notification is not repeated.
func (m *CM) Close() error {
	if rc, err := C.rdma_destroy_id(m.id); rc != 0 {
		return cmFailed("free a connection", err)
	}
	return nil
}

// Device and Port return the local end of the connection, or "" as long as it is unknown.
func (m *CM) Device() string {
	if m.id.verbs == nil {
		return ""
	}
	return C.GoString(C.ibv_get_device_name(m.id.verbs.device))
}
func (m *CM) Port() int { return int(m.id.port_num) }

// Local and Peer return the IP addresses of the ends.
func (m *CM) Local() netip.AddrPort { return m.addr(0) }
func (m *CM) Peer() netip.AddrPort  { return m.addr(1) }

func (m *CM) addr(peer C.int) netip.AddrPort {
	var ip [16]byte
	var port C.uint16_t
	n := C.zv_cm_addr(m.id, peer, (*C.uint8_t)(&ip[0]), &port)
	a, _ := netip.AddrFromSlice(ip[:n]) // the zero Addr if there is none
	return netip.AddrPortFrom(a.Unmap(), uint16(port))
}

// InitBy does Init with the port and partition of a connection.
func (q *QP) InitBy(m *CM, remote Access) error {
	var a C.struct_ibv_qp_attr
	mask, err := m.attributes(&a, C.IBV_QPS_INIT)
	if err != nil {
		return err
	}
	a.qp_access_flags = C.uint(remote)
	return q.modify("INIT", &a, mask)
}

// ConnectBy does Connect over the path of a connection: MTU, service level, partition and addresses
// are the communication manager's. From p it takes the timeouts. If p.QPN is not 0 it also takes
// the peer's queue pair and packet sequence numbers, which are those of another queue pair than the
// connection's.
func (q *QP) ConnectBy(m *CM, p Path) error {
	var rtr, rts C.struct_ibv_qp_attr
	toReceive, err := m.attributes(&rtr, C.IBV_QPS_RTR)
	if err != nil {
		return err
	}
	toSend, err := m.attributes(&rts, C.IBV_QPS_RTS)
	if err != nil {
		return err
	}
	if p.QPN != 0 {
		rtr.dest_qp_num, rtr.rq_psn, rts.sq_psn = C.uint32_t(p.QPN), C.uint32_t(p.RecvPSN), C.uint32_t(p.SendPSN)
	}
	rtr.min_rnr_timer = 12
	rts.timeout, rts.retry_cnt, rts.rnr_retry = C.uint8_t(p.Timeout), C.uint8_t(p.Retries), 7
	if err := q.modify("ready to receive", &rtr, toReceive); err != nil {
		return err
	}
	return q.modify("ready to send", &rts, toSend)
}

// attributes returns the attributes that the communication manager requires for a queue pair to
// enter a state.
func (m *CM) attributes(a *C.struct_ibv_qp_attr, state C.enum_ibv_qp_state) (mask C.int, err error) {
	a.qp_state = state
	if rc, err := C.rdma_init_qp_attr(m.id, a, &mask); rc != 0 {
		return 0, cmFailed("query attributes of a queue pair", err)
	}
	return mask, nil
}

func sockaddr(a netip.AddrPort) (s C.union_zv_sockaddr, err error) {
	ip, v6, scope := a.Addr().Unmap().AsSlice(), C.int(0), 0
	if len(ip) == 0 {
		return s, fmt.Errorf("connection manager: no IP address")
	}
	if len(ip) == 16 {
		v6 = 1
	}
	if z := a.Addr().Zone(); z != "" {
		if scope, err = strconv.Atoi(z); err != nil {
			i, err := net.InterfaceByName(z)
			if err != nil {
				return s, fmt.Errorf("address %s: %w", a, err)
			}
			scope = i.Index
		}
	}
	C.zv_sockaddr(&s, (*C.uint8_t)(&ip[0]), v6, C.uint16_t(a.Port()), C.uint32_t(scope))
	return s, nil
}

func tooLong(data []byte, limit int) error {
	return fmt.Errorf("connection manager: %d bytes of private data, at most %d fit", len(data), limit)
}

// cmFailed returns an error for an operation. errno may be nil if the library has set none.
func cmFailed(what string, errno error) error {
	if errno == nil {
		errno = syscall.EIO
	}
	return fmt.Errorf("connection manager: %s: %w", what, errno)
}

//go:build rdma && cgo

package verbs

/*
#include <errno.h>
#include <infiniband/verbs.h>

// zv_async takes one event and acknowledges it: 1, 0 when there is none, or -errno.
static int zv_async(struct ibv_context *c, int *type, int *port, uint32_t *qpn) {
	struct ibv_async_event e;
	if (ibv_get_async_event(c, &e) != 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	*type = e.event_type;
	*port = 0;
	*qpn = 0;
	switch (e.event_type) {
	case IBV_EVENT_PORT_ACTIVE: case IBV_EVENT_PORT_ERR: case IBV_EVENT_LID_CHANGE: case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE: case IBV_EVENT_CLIENT_REREGISTER: case IBV_EVENT_GID_CHANGE:
		*port = e.element.port_num;
		break;
	case IBV_EVENT_QP_FATAL: case IBV_EVENT_QP_REQ_ERR: case IBV_EVENT_QP_ACCESS_ERR: case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED: case IBV_EVENT_PATH_MIG: case IBV_EVENT_PATH_MIG_ERR: case IBV_EVENT_QP_LAST_WQE_REACHED:
		*qpn = e.element.qp->qp_num;
		break;
	default:
		break;
	}
	ibv_ack_async_event(&e);
	return 1;
}
*/
import "C"

import "syscall"

// AsyncType is the kind of an asynchronous event.
type AsyncType int

const (
	PortActive  AsyncType = C.IBV_EVENT_PORT_ACTIVE
	PortError   AsyncType = C.IBV_EVENT_PORT_ERR
	DeviceFatal AsyncType = C.IBV_EVENT_DEVICE_FATAL
	QPFatal     AsyncType = C.IBV_EVENT_QP_FATAL
	QPRequest   AsyncType = C.IBV_EVENT_QP_REQ_ERR
	QPAccess    AsyncType = C.IBV_EVENT_QP_ACCESS_ERR
	CQError     AsyncType = C.IBV_EVENT_CQ_ERR
)

func (t AsyncType) String() string { return C.GoString(C.ibv_event_type_str(C.enum_ibv_event_type(t))) }

// AsyncEvent is an event of a device.
type AsyncEvent struct {
	Type AsyncType
	Port int    // Port is set in port events.
	QPN  uint32 // QPN is set in queue pair events.
}

// AsyncFD returns a descriptor that does not block and is readable while Async has an event.
func (x *Context) AsyncFD() int { return int(x.c.async_fd) }

// Async removes an event from the queue and returns true, or false if there is none.
func (x *Context) Async() (AsyncEvent, bool, error) {
	var t, port C.int
	var qpn C.uint32_t
	switch n := C.zv_async(x.c, &t, &port, &qpn); {
	case n < 0:
		return AsyncEvent{}, false, failed("get event of device "+x.name, syscall.Errno(-n))
	case n == 0:
		return AsyncEvent{}, false, nil
	}
	return AsyncEvent{AsyncType(t), int(port), uint32(qpn)}, true, nil
}

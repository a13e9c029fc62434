//go:build rdma && cgo

package verbs

/*
#include <string.h>
#include <arpa/inet.h>
#include <infiniband/verbs.h>

static int zv_send(struct ibv_qp *qp, uint64_t id, int opcode, unsigned flags, uint32_t imm,
		   uint64_t addr, uint32_t len, uint32_t lkey, uint64_t addr2, uint32_t len2, uint32_t lkey2, uint64_t raddr, uint32_t rkey,
		   struct ibv_ah *ah, uint32_t qpn, uint32_t qkey) {
	struct ibv_sge sge[2] = { { .addr = addr, .length = len, .lkey = lkey }, { .addr = addr2, .length = len2, .lkey = lkey2 } };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = sge, .num_sge = len2 ? 2 : len ? 1 : 0, .opcode = opcode, .send_flags = flags }, *bad;
	wr.imm_data = htonl(imm);
	if (ah) { // the same bytes as the RDMA fields
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qpn;
		wr.wr.ud.remote_qkey = qkey;
	} else {
		wr.wr.rdma.remote_addr = raddr;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(qp, &wr, &bad);
}

static int zv_recv(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t id, uint64_t addr, uint32_t len, uint32_t lkey) {
	struct ibv_sge sge = { .addr = addr, .length = len, .lkey = lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = len ? 1 : 0 }, *bad;
	return srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
}

static struct ibv_qp *zv_create(struct ibv_pd *pd, struct ibv_cq *scq, struct ibv_cq *rcq, struct ibv_srq *srq,
				int type, uint32_t sends, uint32_t recvs, uint32_t *max_inline) {
	struct ibv_qp_init_attr a = { .send_cq = scq, .recv_cq = rcq, .srq = srq, .qp_type = type,
		.cap = { .max_send_wr = sends, .max_recv_wr = recvs, .max_send_sge = 2, .max_recv_sge = 1, .max_inline_data = *max_inline } };
	struct ibv_qp *qp = ibv_create_qp(pd, &a);
	*max_inline = a.cap.max_inline_data;
	return qp;
}
*/
import "C"

import (
	"fmt"
	"syscall"
	"unsafe"
)

// SRQ is a receive queue that queue pairs share.
type SRQ struct{ s *C.struct_ibv_srq }

// NewSRQ makes a shared queue for n receives.
func (p *PD) NewSRQ(n int) (*SRQ, error) {
	var a C.struct_ibv_srq_init_attr
	a.attr.max_wr, a.attr.max_sge = C.uint32_t(n), 1
	s, err := C.ibv_create_srq(p.p, &a)
	if s == nil {
		return nil, failed(fmt.Sprintf("create shared receive queue for %d receives", n), err)
	}
	return &SRQ{s}, nil
}

// PostRecv adds a receive.
func (s *SRQ) PostRecv(id uint64, into Range) error {
	addr, n, key := into.sge()
	if rc := C.zv_recv(nil, s.s, C.uint64_t(id), addr, n, key); rc != 0 {
		return fmt.Errorf("post receive: %w", syscall.Errno(rc))
	}
	return nil
}

// Close frees the queue; no queue pair may use it any more.
func (s *SRQ) Close() error {
	if rc := C.ibv_destroy_srq(s.s); rc != 0 {
		return failed("destroy shared receive queue", syscall.Errno(rc))
	}
	return nil
}

// Service is the kind of a queue pair.
type Service int

const (
	Reliable Service = iota // Reliable is RC, a reliable connection.
	// Unreliable is UC, an unreliable connection: messages may be lost as a whole, and there are no
	// reads.
	Unreliable
	// Datagram is UD, unreliable datagrams of one packet. Only sends are possible; a longer message
	// is not sent, without an error.
	Datagram
)

var services = [...]C.int{Reliable: C.IBV_QPT_RC, Unreliable: C.IBV_QPT_UC, Datagram: C.IBV_QPT_UD}

// GRH is the number of bytes that the network puts into the receive buffer before a datagram's
// payload (global route header, if there is one).
const GRH = 40

// qkey is the key that datagrams carry and that lets them in. The highest bit, which requires
// privileges, is 0.
const qkey = 0x0a7a6970

// QPConfig describes a queue pair.
type QPConfig struct {
	Service        Service
	SendCQ, RecvCQ *CQ
	SRQ            *SRQ // SRQ may be nil
	// Sends and Recvs are the numbers of requests that may be posted and have not completed; Recvs
	// is not used with an SRQ.
	Sends, Recvs int
	Inline       int // Inline is the requested size in bytes of an inline send.
}

// QP is a queue pair, connected or for datagrams to one peer. After NewQP call Init, then Connect;
// then it can send.
type QP struct {
	q       *C.struct_ibv_qp
	inline  int
	pd      *PD
	service Service
	// ah and qpn are, for datagrams, the path to the peer's queue pair and its number.
	ah  *C.struct_ibv_ah
	qpn C.uint32_t
}

// NewQP makes a queue pair. If the device cannot send the requested number of bytes inline, there
// are no inline sends.
func (p *PD) NewQP(c QPConfig) (*QP, error) {
	var srq *C.struct_ibv_srq
	recvs := C.uint32_t(c.Recvs)
	if c.SRQ != nil {
		srq, recvs = c.SRQ.s, 0
	}
	inline := C.uint32_t(c.Inline)
	q, err := C.zv_create(p.p, c.SendCQ.q, c.RecvCQ.q, srq, services[c.Service], C.uint32_t(c.Sends), recvs, &inline)
	if q == nil && c.Inline > 0 {
		inline = 0
		q, err = C.zv_create(p.p, c.SendCQ.q, c.RecvCQ.q, srq, services[c.Service], C.uint32_t(c.Sends), recvs, &inline)
	}
	if q == nil {
		return nil, failed(fmt.Sprintf("create queue pair for %d sends and %d receives", c.Sends, c.Recvs), err)
	}
	return &QP{q: q, inline: int(inline), pd: p, service: c.Service}, nil
}

// Num returns the number that the peer needs, Inline the largest size in bytes of a send with
// SendInline.
func (q *QP) Num() uint32 { return uint32(q.q.qp_num) }
func (q *QP) Inline() int { return q.inline }

// Close destroys the queue pair; requests that were posted do not complete any more.
func (q *QP) Close() error {
	if rc := C.ibv_destroy_qp(q.q); rc != 0 {
		return failed("destroy queue pair", syscall.Errno(rc))
	}
	if q.ah != nil {
		if rc := C.ibv_destroy_ah(q.ah); rc != 0 {
			return failed("destroy address handle", syscall.Errno(rc))
		}
	}
	return nil
}

// Init prepares the queue pair for receives to be posted. remote is the peer's access to registered
// memory.
func (q *QP) Init(port, pkeyIndex int, remote Access) error {
	var a C.struct_ibv_qp_attr
	a.qp_state, a.port_num, a.pkey_index = C.IBV_QPS_INIT, C.uint8_t(port), C.uint16_t(pkeyIndex)
	if q.service == Datagram {
		a.qkey = qkey
		return q.modify("INIT", &a, C.IBV_QP_STATE|C.IBV_QP_PORT|C.IBV_QP_PKEY_INDEX|C.IBV_QP_QKEY)
	}
	a.qp_access_flags = C.uint(remote)
	return q.modify("INIT", &a, C.IBV_QP_STATE|C.IBV_QP_PORT|C.IBV_QP_PKEY_INDEX|C.IBV_QP_ACCESS_FLAGS)
}

// Path is the path to the peer's queue pair, with its timeouts.
type Path struct {
	// Port is this host's port, counted from 1.
	Port int
	// GIDIndex is the index in this port's GID table.
	GIDIndex int
	Global   bool
	DGID     GID    // DGID is used if Global (always on Ethernet).
	DLID     uint16 // DLID is used on InfiniBand.
	SL       uint8  // SL is the service level.
	MTU      MTU

	QPN uint32 // QPN is the peer's number.
	// SendPSN and RecvPSN are the first packet sequence numbers, of 24 bits.
	SendPSN, RecvPSN uint32

	// Timeout is that of an acknowledgement: 4.096 µs · 2^Timeout. Only Reliable has it.
	Timeout uint8
	Retries uint8 // Retries is at most 7. Only Reliable has them.
}

// Connect moves the queue pair to ready-to-receive and ready-to-send. The peer must have posted
// receives before anything is sent.
func (q *QP) Connect(p Path) error {
	var ah C.struct_ibv_ah_attr
	ah.dlid, ah.sl, ah.port_num = C.uint16_t(p.DLID), C.uint8_t(p.SL), C.uint8_t(p.Port)
	if p.Global {
		ah.is_global = 1
		*(*GID)(unsafe.Pointer(&ah.grh.dgid)) = p.DGID
		ah.grh.sgid_index, ah.grh.hop_limit = C.uint8_t(p.GIDIndex), 64
	}
	var rtr, rts C.struct_ibv_qp_attr
	rtr.qp_state, rts.qp_state = C.IBV_QPS_RTR, C.IBV_QPS_RTS
	toReceive, toSend := C.int(C.IBV_QP_STATE), C.int(C.IBV_QP_STATE|C.IBV_QP_SQ_PSN)
	rts.sq_psn = C.uint32_t(p.SendPSN)
	if q.service == Datagram {
		var err error
		if q.ah, err = C.ibv_create_ah(q.pd.p, &ah); q.ah == nil {
			return failed("create address handle", err)
		}
		q.qpn = C.uint32_t(p.QPN)
	} else {
		rtr.ah_attr, rtr.path_mtu = ah, C.enum_ibv_mtu(p.MTU)
		rtr.dest_qp_num, rtr.rq_psn = C.uint32_t(p.QPN), C.uint32_t(p.RecvPSN)
		toReceive |= C.IBV_QP_AV | C.IBV_QP_PATH_MTU | C.IBV_QP_DEST_QPN | C.IBV_QP_RQ_PSN
	}
	if q.service == Reliable {
		rtr.max_dest_rd_atomic, rtr.min_rnr_timer = 1, 12
		toReceive |= C.IBV_QP_MAX_DEST_RD_ATOMIC | C.IBV_QP_MIN_RNR_TIMER
		rts.timeout, rts.retry_cnt, rts.rnr_retry, rts.max_rd_atomic = C.uint8_t(p.Timeout), C.uint8_t(p.Retries), 7, 1
		toSend |= C.IBV_QP_TIMEOUT | C.IBV_QP_RETRY_CNT | C.IBV_QP_RNR_RETRY | C.IBV_QP_MAX_QP_RD_ATOMIC
	}
	if err := q.modify("ready to receive", &rtr, toReceive); err != nil {
		return err
	}
	return q.modify("ready to send", &rts, toSend)
}

// Fail moves the queue pair to the error state: all posted requests complete with Flushed.
func (q *QP) Fail() error {
	var a C.struct_ibv_qp_attr
	a.qp_state = C.IBV_QPS_ERR
	return q.modify("error", &a, C.IBV_QP_STATE)
}

func (q *QP) modify(to string, a *C.struct_ibv_qp_attr, mask C.int) error {
	if rc := C.ibv_modify_qp(q.q, a, mask); rc != 0 {
		return failed("take queue pair to "+to, syscall.Errno(rc))
	}
	return nil
}

// PostRecv adds a receive; an empty range receives messages without payload.
func (q *QP) PostRecv(id uint64, into Range) error {
	addr, n, key := into.sge()
	if rc := C.zv_recv(q.q, nil, C.uint64_t(id), addr, n, key); rc != 0 {
		return fmt.Errorf("post receive: %w", syscall.Errno(rc))
	}
	return nil
}

// Op is the operation of a request.
type Op int

const (
	Send         Op = C.IBV_WR_SEND
	SendImm      Op = C.IBV_WR_SEND_WITH_IMM
	RDMAWrite    Op = C.IBV_WR_RDMA_WRITE
	RDMAWriteImm Op = C.IBV_WR_RDMA_WRITE_WITH_IMM
	RDMARead     Op = C.IBV_WR_RDMA_READ
)

// Flags of a request.
type Flags uint

const (
	// Signaled makes a request complete with an entry in the queue also if it succeeds.
	Signaled  Flags = C.IBV_SEND_SIGNALED
	Solicited Flags = C.IBV_SEND_SOLICITED
	// SendInline copies the local bytes at once.
	SendInline Flags = C.IBV_SEND_INLINE
	// Fence starts the request after earlier reads.
	Fence Flags = C.IBV_SEND_FENCE
)

// Request is a request to send, write or read.
type Request struct {
	ID    uint64
	Op    Op
	Flags Flags
	Local Range
	// More follows Local unless it is empty; Local is not empty then.
	More Range
	Imm  uint32
	// RemoteAddr and RKey are the address and the key of the peer's memory, in RDMA operations.
	RemoteAddr uint64
	RKey       uint32
}

// Post starts a request. It does not block or allocate.
func (q *QP) Post(r Request) error {
	addr, n, key := r.Local.sge()
	addr2, n2, key2 := r.More.sge()
	if rc := C.zv_send(q.q, C.uint64_t(r.ID), C.int(r.Op), C.unsigned(r.Flags), C.uint32_t(r.Imm), addr, n, key, addr2, n2, key2, C.uint64_t(r.RemoteAddr), C.uint32_t(r.RKey), q.ah, q.qpn, qkey); rc != 0 {
		return fmt.Errorf("post send: %w", syscall.Errno(rc))
	}
	return nil
}

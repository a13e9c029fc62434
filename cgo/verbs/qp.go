//go:build rdma && cgo

package verbs

/*
#include <string.h>
#include <arpa/inet.h>
#include <infiniband/verbs.h>

static int zv_send(struct ibv_qp *qp, uint64_t id, int opcode, unsigned flags, uint32_t imm,
		   uint64_t addr, uint32_t len, uint32_t lkey, uint64_t addr2, uint32_t len2, uint32_t lkey2, uint64_t raddr, uint32_t rkey) {
	struct ibv_sge sge[2] = { { .addr = addr, .length = len, .lkey = lkey }, { .addr = addr2, .length = len2, .lkey = lkey2 } };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = sge, .num_sge = len2 ? 2 : len ? 1 : 0, .opcode = opcode, .send_flags = flags }, *bad;
	wr.imm_data = htonl(imm);
	wr.wr.rdma.remote_addr = raddr;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(qp, &wr, &bad);
}

static int zv_recv(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t id, uint64_t addr, uint32_t len, uint32_t lkey) {
	struct ibv_sge sge = { .addr = addr, .length = len, .lkey = lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = len ? 1 : 0 }, *bad;
	return srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
}

static struct ibv_qp *zv_create(struct ibv_pd *pd, struct ibv_cq *scq, struct ibv_cq *rcq, struct ibv_srq *srq,
				uint32_t sends, uint32_t recvs, uint32_t *max_inline) {
	struct ibv_qp_init_attr a = { .send_cq = scq, .recv_cq = rcq, .srq = srq, .qp_type = IBV_QPT_RC,
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

// Close frees it; no queue pair may use it any more.
func (s *SRQ) Close() error {
	if rc := C.ibv_destroy_srq(s.s); rc != 0 {
		return failed("destroy shared receive queue", syscall.Errno(rc))
	}
	return nil
}

// QPConfig describes a queue pair.
type QPConfig struct {
	SendCQ, RecvCQ *CQ
	SRQ            *SRQ // or nil
	Sends, Recvs   int  // requests that may be posted and not yet completed; Recvs is not used with an SRQ
	Inline         int  // wanted bytes of an inline send
}

// QP is a reliable connected queue pair. After NewQP: Init, then Connect, then it can send.
type QP struct {
	q      *C.struct_ibv_qp
	inline int
}

// NewQP makes a queue pair. A device that cannot send the wanted number of bytes inline does without.
func (p *PD) NewQP(c QPConfig) (*QP, error) {
	var srq *C.struct_ibv_srq
	recvs := C.uint32_t(c.Recvs)
	if c.SRQ != nil {
		srq, recvs = c.SRQ.s, 0
	}
	inline := C.uint32_t(c.Inline)
	q, err := C.zv_create(p.p, c.SendCQ.q, c.RecvCQ.q, srq, C.uint32_t(c.Sends), recvs, &inline)
	if q == nil && c.Inline > 0 {
		inline = 0
		q, err = C.zv_create(p.p, c.SendCQ.q, c.RecvCQ.q, srq, C.uint32_t(c.Sends), recvs, &inline)
	}
	if q == nil {
		return nil, failed(fmt.Sprintf("create queue pair for %d sends and %d receives", c.Sends, c.Recvs), err)
	}
	return &QP{q, int(inline)}, nil
}

// Num is the number that the peer must be told, Inline how many bytes a send with SendInline may have.
func (q *QP) Num() uint32 { return uint32(q.q.qp_num) }
func (q *QP) Inline() int { return q.inline }

// Close destroys it; what was posted does not complete any more.
func (q *QP) Close() error {
	if rc := C.ibv_destroy_qp(q.q); rc != 0 {
		return failed("destroy queue pair", syscall.Errno(rc))
	}
	return nil
}

// Init readies it for receives to be posted. remote says what the peer may do to registered memory.
func (q *QP) Init(port, pkeyIndex int, remote Access) error {
	var a C.struct_ibv_qp_attr
	a.qp_state, a.port_num, a.pkey_index = C.IBV_QPS_INIT, C.uint8_t(port), C.uint16_t(pkeyIndex)
	a.qp_access_flags = C.uint(remote)
	return q.modify("INIT", &a, C.IBV_QP_STATE|C.IBV_QP_PORT|C.IBV_QP_PKEY_INDEX|C.IBV_QP_ACCESS_FLAGS)
}

// Path is the way to the peer's queue pair, and how patient to be on it.
type Path struct {
	Port     int // own
	GIDIndex int // own
	Global   bool
	DGID     GID    // used if Global (always on Ethernet)
	DLID     uint16 // InfiniBand
	SL       uint8  // service level
	MTU      MTU

	QPN              uint32 // the peer's
	SendPSN, RecvPSN uint32 // first packet sequence numbers, 24 bits

	Timeout uint8 // of an acknowledgement: 4.096 µs · 2^Timeout
	Retries uint8 // at most 7
}

// Connect takes it to ready-to-receive and ready-to-send. The peer must have posted receives before anything is sent.
func (q *QP) Connect(p Path) error {
	var a C.struct_ibv_qp_attr
	a.qp_state = C.IBV_QPS_RTR
	a.path_mtu = C.enum_ibv_mtu(p.MTU)
	a.dest_qp_num, a.rq_psn = C.uint32_t(p.QPN), C.uint32_t(p.RecvPSN)
	a.max_dest_rd_atomic, a.min_rnr_timer = 1, 12
	a.ah_attr.dlid, a.ah_attr.sl, a.ah_attr.port_num = C.uint16_t(p.DLID), C.uint8_t(p.SL), C.uint8_t(p.Port)
	if p.Global {
		a.ah_attr.is_global = 1
		*(*GID)(unsafe.Pointer(&a.ah_attr.grh.dgid)) = p.DGID
		a.ah_attr.grh.sgid_index, a.ah_attr.grh.hop_limit = C.uint8_t(p.GIDIndex), 64
	}
	if err := q.modify("ready to receive", &a, C.IBV_QP_STATE|C.IBV_QP_AV|C.IBV_QP_PATH_MTU|C.IBV_QP_DEST_QPN|C.IBV_QP_RQ_PSN|C.IBV_QP_MAX_DEST_RD_ATOMIC|C.IBV_QP_MIN_RNR_TIMER); err != nil {
		return err
	}
	a = C.struct_ibv_qp_attr{}
	a.qp_state = C.IBV_QPS_RTS
	a.timeout, a.retry_cnt, a.rnr_retry = C.uint8_t(p.Timeout), C.uint8_t(p.Retries), 7
	a.sq_psn, a.max_rd_atomic = C.uint32_t(p.SendPSN), 1
	return q.modify("ready to send", &a, C.IBV_QP_STATE|C.IBV_QP_TIMEOUT|C.IBV_QP_RETRY_CNT|C.IBV_QP_RNR_RETRY|C.IBV_QP_SQ_PSN|C.IBV_QP_MAX_QP_RD_ATOMIC)
}

// Fail takes it to the error state: everything posted completes with Flushed.
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

// PostRecv adds a receive; an empty range takes messages without payload.
func (q *QP) PostRecv(id uint64, into Range) error {
	addr, n, key := into.sge()
	if rc := C.zv_recv(q.q, nil, C.uint64_t(id), addr, n, key); rc != 0 {
		return fmt.Errorf("post receive: %w", syscall.Errno(rc))
	}
	return nil
}

// Op is what a request does.
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
	Signaled   Flags = C.IBV_SEND_SIGNALED // completes with an entry in the queue also if it succeeds
	Solicited  Flags = C.IBV_SEND_SOLICITED
	SendInline Flags = C.IBV_SEND_INLINE // the local bytes are taken at once
	Fence      Flags = C.IBV_SEND_FENCE  // after earlier reads
)

// Request is one to send, write or read.
type Request struct {
	ID    uint64
	Op    Op
	Flags Flags
	Local Range
	More  Range // follows Local, if not empty; then Local is not empty either
	Imm   uint32
	// Of RDMA operations:
	RemoteAddr uint64
	RKey       uint32
}

// Post starts a request. It does not block or allocate.
func (q *QP) Post(r Request) error {
	addr, n, key := r.Local.sge()
	addr2, n2, key2 := r.More.sge()
	if rc := C.zv_send(q.q, C.uint64_t(r.ID), C.int(r.Op), C.unsigned(r.Flags), C.uint32_t(r.Imm), addr, n, key, addr2, n2, key2, C.uint64_t(r.RemoteAddr), C.uint32_t(r.RKey)); rc != 0 {
		return fmt.Errorf("post send: %w", syscall.Errno(rc))
	}
	return nil
}

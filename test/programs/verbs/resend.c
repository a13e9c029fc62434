/* Checks whether messages over reliable connections arrive as sent, once and in order, also when
 * acknowledgements are late. It uses plain verbs and no part of the zipper; soft-RoCE fails it
 * (docs/howto/infiniband.md).
 *
 *   resend TIMEOUT SECONDS PORT [SERVER]    one end without SERVER, the other with its IP address
 *
 * 8 connections use the first RDMA device, in both directions. Half of them use sends, half RDMA
 * writes with immediate data. Messages have 16 bytes to 8 or 32 KiB, and at most 16 are in flight.
 * The timeout of an acknowledgement is 4.096 us * 2^TIMEOUT. Each message contains its identity in
 * every word. A sender writes nothing to a buffer before its completion, and overwrites it then; a
 * receiver overwrites a buffer that it has checked. A connection ends with its first fault. Exit
 * status 0: no fault. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 8, SLOTS = 16, ACK = 4 };

struct connection {
  int sends, writes, over;
  unsigned slot; /* in bytes */
  struct ibv_qp *qp;
  struct ibv_mr *mr;
  char *mem;
  uint64_t remote;
  uint32_t key;
  uint32_t sent, completed, acknowledged; /* the sender's counts of messages */
  uint32_t received, acknowledged_upto,
      acks_in_flight; /* the receiver's counts of messages, and of acknowledgements in flight */
} all[CONNECTIONS];

struct end {
  uint32_t qpn, psn, key, unused;
  uint64_t memory;
  union ibv_gid gid;
};

static int faults;

static void must(int ok, const char *what) {
  if (!ok) {
    perror(what);
    exit(2);
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static uint32_t word(int c, uint32_t message, uint32_t i) { return (uint32_t)c << 28 | (message & 0x7fff) << 13 | i; }

static uint32_t length(struct connection *c, uint32_t message) {
  uint32_t x = message * 2654435761u;
  x ^= x >> 15;
  return x % 4 ? 16 + (x >> 3) % (c->slot - 16) / 4 * 4 : c->slot;
}

static void fault(struct connection *c, uint32_t message, const char *what) {
  printf("connection %d (%s), message %u: %s\n", (int)(c - all), c->writes ? "writes" : "sends", message, what);
  fflush(stdout);
  c->over = 1;
  faults++;
}

static void post_recv(struct connection *c, uint64_t i) {
  struct ibv_sge s = {(uintptr_t)c->mem + i * c->slot, c->slot, c->mr->lkey};
  struct ibv_recv_wr w = {.wr_id = i, .sg_list = &s, .num_sge = !c->sends && !c->writes}, *bad;
  must((errno = ibv_post_recv(c->qp, &w, &bad)) == 0, "ibv_post_recv");
}

static void post_send(struct connection *c, struct ibv_send_wr *w) {
  struct ibv_send_wr *bad;
  w->send_flags = IBV_SEND_SIGNALED;
  must((errno = ibv_post_send(c->qp, w, &bad)) == 0, "ibv_post_send");
}

static void send_next(struct connection *c) {
  uint32_t m = c->sent++, n = length(c, m), at = m % SLOTS * c->slot, *p = (uint32_t *)(c->mem + at);
  for (uint32_t i = 0; i < n / 4; i++) p[i] = word(c - all, m, i);
  struct ibv_sge s = {(uintptr_t)p, n, c->mr->lkey};
  struct ibv_send_wr w = {.wr_id = m,
                          .sg_list = &s,
                          .num_sge = 1,
                          .opcode = c->writes ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM,
                          .imm_data = htonl(m)};
  w.wr.rdma.remote_addr = c->remote + at;
  w.wr.rdma.rkey = c->key;
  post_send(c, &w);
}

/* acknowledge tells the sender the number of messages that have been checked. */
static void acknowledge(struct connection *c) {
  if (c->received - c->acknowledged_upto < ACK || c->acks_in_flight > 2 * SLOTS / ACK) return;
  struct ibv_send_wr w = {.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(c->received)};
  post_send(c, &w);
  c->acknowledged_upto = c->received;
  c->acks_in_flight++;
}

static void look(struct connection *c, struct ibv_wc *w) {
  char what[200];
  uint32_t m = c->received, n = length(c, m), came = ntohl(w->imm_data), wrong = 0;
  uint32_t *p = (uint32_t *)(c->mem + (c->writes ? m % SLOTS : w->wr_id) * c->slot);
  if (came != m || w->byte_len != n) {
    snprintf(what, sizeof what, "message %u of %u bytes came in place of its %u bytes", came, w->byte_len, n);
    return fault(c, m, what);
  }
  for (uint32_t i = 0; i < n / 4; i++)
    if (p[i] != word(c - all, m, i) && wrong++ == 0)
      snprintf(what, sizeof what, "of its %u bytes those from %u are %#x, which is message %u, byte %u", n, 4 * i, p[i],
               p[i] >> 13 & 0x7fff, 4 * (p[i] & 0x1fff));
  if (wrong) return fault(c, m, what);
  memset(p, 0xee, c->slot);
  c->received++;
  post_recv(c, w->wr_id);
}

static void completed(struct ibv_wc *w) {
  struct connection *c = all;
  while (c->qp->qp_num != w->qp_num) c++;
  if (c->over) return;
  if (w->status) return fault(c, c->sends ? c->completed : c->received, ibv_wc_status_str(w->status));
  if (!(w->opcode & IBV_WC_RECV)) {
    if (!c->sends) {
      c->acks_in_flight--;
      return;
    }
    memset(c->mem + c->completed % SLOTS * c->slot, 0xdd, c->slot);
    c->completed++;
  } else if (c->sends) {
    uint32_t n = ntohl(w->imm_data);
    if (n - c->acknowledged > SLOTS || w->byte_len)
      return fault(c, n, "acknowledged, but not sent or not for the first time");
    c->acknowledged = n;
    post_recv(c, w->wr_id);
  } else look(c, w);
}

static int meet(int port, const char *server) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
  if (!server) {
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    must(bind(s, (void *)&a, sizeof a) == 0 && listen(s, 1) == 0, "listen");
    must((s = accept(s, 0, 0)) >= 0, "accept");
    return s;
  }
  must(inet_pton(AF_INET, server, &a.sin_addr) == 1, server);
  /* until the peer listens */
  for (double end = now() + 60; connect(s, (void *)&a, sizeof a) != 0; s = socket(AF_INET, SOCK_STREAM, 0)) {
    must(now() < end, "connect");
    close(s);
    usleep(100000);
  }
  return s;
}

static void swap(int s, void *mine, void *theirs, int n) {
  must(write(s, mine, n) == n && recv(s, theirs, n, MSG_WAITALL) == n, "exchange with the other end");
}

int main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "usage: resend TIMEOUT SECONDS PORT [SERVER]\n"), 2;
  struct ibv_device **devices = ibv_get_device_list(0);
  must(devices && devices[0], "no RDMA device");
  struct ibv_context *x = ibv_open_device(devices[0]);
  must(x != 0, "ibv_open_device");
  struct ibv_port_attr port;
  must((errno = ibv_query_port(x, 1, &port)) == 0, "ibv_query_port");
  struct end me = {0}, peer;
  int gid = 0;
  /* the GID of the IPv4 address */
  while (gid < port.gid_tbl_len &&
         (ibv_query_gid(x, 1, gid, &me.gid) != 0 || me.gid.raw[10] != 0xff || me.gid.raw[11] != 0xff))
    gid++;
  struct ibv_pd *pd = ibv_alloc_pd(x);
  struct ibv_comp_channel *ch = ibv_create_comp_channel(x);
  struct ibv_cq *cq = ibv_create_cq(x, 128 * CONNECTIONS, 0, ch, 0);
  must(pd && ch && cq, "completion queue");
  int s = meet(atoi(argv[3]), argv[4]), server = argv[4] == 0;
  for (struct connection *c = all; c < all + CONNECTIONS; c++) {
    int i = c - all;
    c->sends = i % 2 == server;
    c->writes = i / 2 % 2;
    c->slot = c->writes ? 32 << 10 : 8 << 10;
    must((c->mem = aligned_alloc(4096, 2 * SLOTS * c->slot)) != 0, "memory");
    must((c->mr = ibv_reg_mr(pd, c->mem, 2 * SLOTS * c->slot, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) != 0,
         "ibv_reg_mr");
    struct ibv_qp_init_attr q = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {2 * SLOTS, 2 * SLOTS, 1, 1, 0}};
    must((c->qp = ibv_create_qp(pd, &q)) != 0, "ibv_create_qp");
    me.qpn = c->qp->qp_num, me.psn = 1000 * i, me.key = c->mr->rkey, me.memory = (uintptr_t)c->mem;
    swap(s, &me, &peer, sizeof me);
    c->remote = peer.memory, c->key = peer.key;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    must((errno = ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS)) == 0,
         "INIT");
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = port.active_mtu,
        .dest_qp_num = peer.qpn,
        .rq_psn = peer.psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer.gid, .sgid_index = gid, .hop_limit = 64}}};
    must((errno = ibv_modify_qp(c->qp, &a,
                                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) == 0,
         "RTR");
    for (int k = 0; k < 2 * SLOTS; k++) post_recv(c, k);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .timeout = atoi(argv[1]),
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .sq_psn = me.psn,
                             .max_rd_atomic = 1};
    must((errno = ibv_modify_qp(c->qp, &a,
                                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                    IBV_QP_MAX_QP_RD_ATOMIC)) == 0,
         "RTS");
  }
  swap(s, &me, &peer, 1); /* both are ready */
  for (double end = now() + atoi(argv[2]); now() < end;) {
    for (struct connection *c = all; c < all + CONNECTIONS; c++) {
      while (!c->over && c->sends && c->sent - c->acknowledged < SLOTS && c->sent - c->completed < SLOTS) send_next(c);
      if (!c->over && !c->sends) acknowledge(c);
    }
    struct ibv_wc w[32];
    int n = ibv_poll_cq(cq, 32, w);
    if (n == 0) {
      must(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
      n = ibv_poll_cq(cq, 32, w); /* one may have arrived before */
    }
    struct pollfd f = {ch->fd, POLLIN, 0};
    if (n == 0 && poll(&f, 1, 100) > 0) {
      struct ibv_cq *from;
      void *context;
      must(ibv_get_cq_event(ch, &from, &context) == 0, "ibv_get_cq_event");
      ibv_ack_cq_events(from, 1);
    }
    for (int i = 0; i < n; i++) completed(w + i);
  }
  unsigned long right = 0;
  for (struct connection *c = all; c < all + CONNECTIONS; c++) right += c->received;
  printf("timeout %s: %lu messages right, %d of %d connections at fault\n", argv[1], right, faults, CONNECTIONS);
  return faults > 0;
}

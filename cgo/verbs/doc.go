// Package verbs binds rdma-core's libibverbs and librdmacm: devices, ports, GIDs, protection
// domains, memory regions, completion channels and queues, queue pairs (reliable and unreliable
// connections, datagrams), shared receive queues, sends, receives, RDMA writes and reads; and
// connecting through the communication manager.
//
// It is there when the program is built with the tag rdma (scripts/build sets it when rdma-core's
// headers are installed) and cgo; Built tells. Every return code of the library is checked and
// becomes an error that wraps the errno. Before the first device is opened, ibv_fork_init has been
// called.
//
// Memory given to Register must not move and must outlive the MR: memory outside of Go's heap
// (mmap, C).
//
// Concurrency: as in libibverbs, objects may be used by several threads at once; only an object's
// Close must come alone and after that of all objects made from it. A CQ's Poll is for one thread
// at a time.
package verbs

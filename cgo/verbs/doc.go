// Package verbs binds rdma-core's libibverbs and librdmacm: devices, ports, GIDs, protection
// domains, memory regions, completion channels and queues, queue pairs (reliable and unreliable
// connections, datagrams), shared receive queues, sends, receives, RDMA writes and reads; and
// connecting through the communication manager.
//
// The bindings are built with cgo and the tag rdma (scripts/build sets the tag if rdma-core's
// headers are installed); Built reports whether they are. Every return code of the library is
// checked and becomes an error that wraps the errno. Before the first device is opened,
// ibv_fork_init is called, unless the kernel copies pinned pages for children (ForkCopies).
//
// Memory that is passed to Register must not move and must outlive the MR, so it must be outside of
// Go's heap (mmap, C).
//
// Concurrency: as in libibverbs, objects may be used by several threads at once. An object's Close
// must be the only call on it, and must come after that of all objects made from it. A CQ's Poll is
// for one thread at a time.
package verbs

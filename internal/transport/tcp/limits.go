package tcp

// maxVec is the largest number of slices of one write; the others wait for the next call. Each
// costs 16 bytes of stack.
const maxVec = 64

// Unsent is the number of unsent bytes that a socket holds: 128 KiB, a segment of the engine's. The
// kernel would hold megabytes, and frames that overtake bulk data in the queues above (small
// messages, the go-ahead for messages in the other direction) would wait behind them: seconds,
// where a slow link is shared. Measured: docs/decisions/0021-short-send-queues.md.
const Unsent = 128 << 10

// BBR, where it is the system's default, sets a timer for every packet that it sends. At the speed
// of a cluster's network that takes more processor time than the data
// (docs/decisions/0020-reno-instead-of-bbr.md). Reno is allowed to every user. Other defaults
// stay. Over a long path with packet loss only BBR fills the path (UseLongPath).
const (
	pacing   = "bbr"
	unpacing = "reno"
)

// repeats is the number of unanswered retransmissions of a segment after which the peer's host
// counts as unheard. With Linux's first time-out of 200 ms the last one is after 0.6 s, and by then
// three packets are lost. With fewer, a burst of losses is taken for a cut by a user of the link
// who waits for a second or two only; with more, a cut is noticed later.
const repeats = 2

// offload is the largest size of a packet that Linux makes, in bytes, before the network card or
// the kernel just before it cuts it into segments. It is a whole number of segments (64 KiB without
// the room for headers, net/ipv4/tcp.c, tcp_xmit_size_goal; a card may be set to take more). Cost
// of a packet: docs/decisions/0012-segments-fill-packets.md.
const offload = 64<<10 - 321

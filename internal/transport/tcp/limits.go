package tcp

// maxVec is how many slices one write takes; more wait for the next call. Each costs 16 bytes of
// stack.
const maxVec = 64

// Unsent is how many bytes a socket holds that it cannot send yet: 128 KiB, a segment of the
// engine's. The kernel would take megabytes, and what overtakes bulk in the queues above (small
// messages, the go-ahead for messages in the other direction) would wait behind them: seconds,
// where a slow link is shared. Measured: docs/decisions/0021-short-send-queues.md.
const Unsent = 128 << 10

// BBR, where it is the system's default, sets a timer for every packet that it lets go: at the
// speed of a cluster's network that takes more processor time than the data
// (docs/decisions/0020-reno-instead-of-bbr.md). Reno is allowed to everybody. Other defaults stay.
// Over a long path BBR is what fills it where packets are lost (Far).
const (
	pacing   = "bbr"
	unpacing = "reno"
)

// repeats is how often a segment must have gone out again in vain until the peer's host counts as
// unheard: with Linux's first time-out of 200 ms the last time after 3 s. Fewer: a burst of losses
// is taken for a cut.
const repeats = 4

// offload is what Linux puts into one packet at most, in bytes, which the network card, or the
// kernel just before it, cuts into segments: a whole number of them (64 KiB without the room for
// headers, net/ipv4/tcp.c, tcp_xmit_size_goal; a card may be set to take more). What a packet
// costs: docs/decisions/0012-segments-fill-packets.md.
const offload = 64<<10 - 321

package bridge

import "time"

// LargeAnswer is the time that a forwarder may take to answer a Ping of the largest size over a new
// link, 5 s: longer than a loss and its retransmission take, shorter than a user's patience.
const LargeAnswer = 5 * time.Second

// leastRemaining is the least time for which a running job waits for a link that was lost by
// silence, 500 ms. Reconnecting takes a few round trips. A longer time tells the survivors later of
// a loss.
const leastRemaining = 500 * time.Millisecond

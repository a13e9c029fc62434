package bridge

import "time"

// LargeAnswer is the time that a forwarder may take to answer a Ping of the largest size over a new
// link, 5 s: longer than a loss and its retransmission take, shorter than a user's patience.
const LargeAnswer = 5 * time.Second

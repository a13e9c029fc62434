package lab

import "time"

// maxLabs is how many labs may be up on a machine: each number is a name that the next start cleans
// up after a run that was killed.
const maxLabs = 64

// endTime is how long a forwarder has to end after it was told to; then it is killed.
const endTime = 5 * time.Second

package lab

import "time"

// maxLabs is the largest number of labs that are up on a machine at once. Each number is a name,
// under which the next start removes the lab of a killed run.
const maxLabs = 64

// endTime is how long a forwarder has to end before it is killed.
const endTime = 5 * time.Second

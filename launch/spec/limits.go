package spec

import "time"

// defaultTimeout is how long a cluster waits for the others to join. It suits clusters that
// are started together; where each waits for its own batch system the user says more (--timeout).
const defaultTimeout = 60 * time.Second

// maxHosts bounds what a few characters such as a[1-999999999] stand for.
const maxHosts = 1 << 17

// maxHetGroups bounds what the environment may say of a heterogeneous job.
const maxHetGroups = 256

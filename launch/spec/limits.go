package spec

import "time"

// defaultTimeout is how long a cluster waits for the others to join. It suits clusters that are
// started together. For clusters that wait for their batch systems the user chooses a longer time
// (--timeout).
const defaultTimeout = 60 * time.Second

// maxHosts bounds the number of hosts that a few characters such as a[1-999999999] stand for.
const maxHosts = 1 << 17

// maxHetGroups bounds the number of groups of a heterogeneous job in the environment.
const maxHetGroups = 256

package native

import "time"

// versionTime is how long a launcher may take to print its version. It is long, because the first
// start of a program from a remote file system is slow, and a wrong answer ends the job.
const versionTime = 20 * time.Second

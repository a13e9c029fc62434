package native

import "time"

// versionTime is how long a launcher may take to say its version: long, because the first start of
// a program from a file system that is far away is slow, and a wrong answer ends the job.
const versionTime = 20 * time.Second

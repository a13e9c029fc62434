package jobcmd

import "time"

// tellTime bounds the report to forwarders that a half cannot start, 3 s.
const tellTime = 3 * time.Second

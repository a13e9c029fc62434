package jobcmd

import "time"

// tellTime bounds telling forwarders that a half cannot be, 3 s.
const tellTime = 3 * time.Second

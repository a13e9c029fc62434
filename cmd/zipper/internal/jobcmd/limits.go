package jobcmd

import "time"

// tellTime bounds the report to forwarders that a half cannot start, 3 s.
const tellTime = 3 * time.Second

// togetherTimeout is how long a half waits for the others to join when all run already, 5 min, in
// place of the time for halves that begin when they can.
const togetherTimeout = 5 * time.Minute

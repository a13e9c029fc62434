package ticket

import "time"

// leeway is how far the clocks of the site and of a forwarder may be apart, 30 s. Longer: an
// expired ticket is good for longer; shorter: a new one is refused where clocks are off.
const leeway = 30 * time.Second

package ticket

import "time"

// leeway is the tolerated difference of the clocks of the site and of a forwarder, 30 s. Longer: an
// expired ticket is accepted for longer; shorter: a new ticket is refused where clocks differ.
const leeway = 30 * time.Second

package monitor

import "time"

// DefaultPort is where a forwarder shows its status.
const DefaultPort = 7476

// How long an answer at /status is, in bytes.
const (
	// maxStatus is the longest answer that Fetch reads, 16 MiB: thousands of jobs.
	maxStatus = 16 << 20

	// maxAnswer is where the lists of an answer end, 15 MiB. The rest of the answer has a few KiB,
	// so the whole stays below maxStatus.
	maxAnswer = 15 << 20

	// pastShare is the inverse of the part of maxAnswer that jobs which have ended may take, 1/8.
	pastShare = 8
)

// aliveWithin is how long a forwarder may take to show that it works: many times what a busy one
// needs.
const aliveWithin = 2 * time.Second

// How long a client may take. Longer: who is slow, or hostile, keeps a descriptor.
const (
	headerTime = 5 * time.Second  // for its request's head
	writeTime  = 30 * time.Second // to take the answer
	idleTime   = time.Minute      // until the next request
)

// How much clients may take.
const (
	// maxConns is how many connections the status address has at once, 40: maxWatchers pages, and 8
	// for all else. More: fewer of the descriptors that package forwarder leaves for all but links
	// (otherFiles) are for its loops and listeners; fewer: clients that come together close each
	// other's connections.
	maxConns = maxWatchers + 8

	// headerBytes is the longest head of a request, 16 KiB. Browsers send a few.
	headerBytes = 16 << 10
)

// How many series there are: a Prometheus keeps each for as long as it keeps anything.
const (
	// maxJobs have series of their own, 64; more are in the totals.
	maxJobs = 64

	// maxPeers is how many other forwarders have, 32.
	maxPeers = 32
)

// Where histograms divide, in seconds, or bytes.
var (
	waitBuckets   = []float64{1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10}
	lengthBuckets = []float64{1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
	gatherBuckets = []float64{0.1, 0.3, 1, 3, 10, 30, 60, 300, 1800}
	ranBuckets    = []float64{1, 10, 60, 600, 3600, 6 * 3600, 24 * 3600}
)

// The page for people.
const (
	// step is how often the forwarder is looked at, 2 s. Shorter: rates jump, pages cost more;
	// longer: people wait.
	step = 2 * time.Second

	// ratesKept is how many steps the page's chart has, five minutes.
	ratesKept = 150

	// rateSteps and minuteSteps are over how many steps rates of jobs are taken, 6 s and a minute.
	rateSteps   = 3
	minuteSteps = 30

	// maxWatchers is how many pages may be open at once, 32: each is a connection.
	maxWatchers = 32

	// jobsShown is how many jobs a page has, 100; more are counted.
	jobsShown = 100

	// maxView is the most that a page gets in a step, 4 MiB: room for jobsShown jobs with all their
	// directions if names have the usual length.
	maxView = 4 << 20
)

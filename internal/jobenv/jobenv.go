// Package jobenv tells a launched process which job it belongs to, by some environment variables.
// The launcher or a batch script writes them, and the engine reads them when MPI starts.
//
// Sizes are in bytes. Errors name the variable and its correct form; ErrNoJob means that the
// process was not started as part of a job. All functions are safe for concurrent use, values as
// plain data.
package jobenv

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/vrank"
)

// These are the variables. Ranks inside the cluster come from the cluster's own MPI, never from
// here.
const (
	VarJob        = "ZIPPER_JOB"         // job id: letters, digits, '.', '_', '-'
	VarSecret     = "ZIPPER_SECRET"      // shared secret of the job
	VarSecretFile = "ZIPPER_SECRET_FILE" // a file that holds the secret, in place of ZIPPER_SECRET
	VarCluster    = "ZIPPER_CLUSTER"     // name of this process's cluster
	VarLayout     = "ZIPPER_LAYOUT"      // all clusters in order of virtual rank: "a=4,b=2"
	// networks without ranks that forwarders of a job with several hops are on: "wan,wan2"
	VarNetworks = "ZIPPER_NETWORKS"
	// the order of the ranks of MPI_COMM_WORLD, if it is not that of virtual rank: the cluster of
	// each rank, "a,b=2,a" (ParseOrder); equal in all clusters
	VarOrder = "ZIPPER_ORDER"
	// forwarders that this cluster reaches: "host:port[,host:port…]", or unix:/path for shared
	// memory; for several hops all forwarders, as in host:port=a+b (ParseZipper)
	VarForwarders = "ZIPPER_FORWARDERS"
	// strict: join no forwarder whose host key is not known (HOST:PORT#KEY, known_forwarders);
	// accept-new: the launcher asks it once, and keeps its key
	VarHostKeys   = "ZIPPER_HOST_KEYS"
	VarKnown      = "ZIPPER_KNOWN_FORWARDERS" // the file known_forwarders; default: in ~/.config/zipper
	VarTicket     = "ZIPPER_TICKET"           // the job's ticket, for forwarders that demand one
	VarTicketFile = "ZIPPER_TICKET_FILE"      // a file that holds the ticket, in place of ZIPPER_TICKET
	// for ranks on zipper nodes: the nodes' addresses on the networks of other clusters, whose
	// ranks then reach them without a forwarder (ParseDual); ranks on other nodes ignore it
	VarDual = "ZIPPER_DUAL"
	// the addresses to which ranks of this cluster may open direct links, in addition to the
	// addresses of its forwarders: addresses, host names and networks, as in 10.2.0.7,10.3.0.0/24
	// (ParseDirectAllow); ranks dial no others, even if a forwarder names them
	VarDirectAllow = "ZIPPER_DIRECT_ALLOW"

	VarTimeout = "ZIPPER_TIMEOUT" // how long to wait for the other clusters, a Go duration; default 60s
	VarLog     = "ZIPPER_LOG"     // debug, info, warn (default), error
	VarPoll    = "ZIPPER_POLL"    // adaptive (default), busy, event
	// classic: a handshake for every message, one transfer at a time, for comparison; equal in all
	// clusters and in the forwarder
	VarProtocol = "ZIPPER_PROTOCOL"
	// protection of frames in transit: plain, checked, sealed; default: checked, sealed if
	// forwarders are on networks without ranks, plain with the classic protocol; equal in all
	// clusters
	VarLevel = "ZIPPER_LEVEL"
	// time for which a job waits for an unreachable rank, forwarder or link that is not known to be
	// dead, a Go duration; default 60s; equal in all clusters
	VarPatience = "ZIPPER_PATIENCE"
	// reaction of the job to the loss of a cluster: end (default), or continue without it; equal in
	// all clusters
	VarOnLoss = "ZIPPER_ON_LOSS"
	// side of a permanently cut link between forwarders that continues, with
	// ZIPPER_ON_LOSS=continue: rank0, the side with rank 0 (default), or both; equal in all
	// clusters
	VarQuorum = "ZIPPER_QUORUM"
	// message sizes and other limits from which another collective algorithm is used, as in
	// segment=64K,leaders=2; equal in all clusters
	VarCollectives = "ZIPPER_COLLECTIVES"
	// file of zipper tune whose table zipper run and zipper bench give to all clusters as
	// ZIPPER_COLLECTIVES
	VarTuning = "ZIPPER_TUNING"
	// bytes: messages of at least this size are sent from the program's memory and received into it
	// over verbs, without copies; 0: none; default 1 MiB, or 128 KiB where registrations are kept
	VarInPlace = "ZIPPER_IN_PLACE"
	// 1: registrations of that memory are kept, and a preloaded library watches for memory that the
	// program unmaps
	VarCache = "ZIPPER_REGISTRATION_CACHE"
	// the value of MPI_APPNUM in the first program that this cluster's mpirun starts, counted over
	// the job's programs from 0; zipper run and submit set it; without it MPI_APPNUM has no value
	VarAppnum = "ZIPPER_APPNUM"
	VarReport = "ZIPPER_REPORT" // if set, a file name prefix for per-rank traffic records
)

// Cluster is one entry of the layout.
type Cluster = vrank.Cluster

// Job is the content of the variables.
type Job struct {
	ID      string
	Secret  string
	Cluster string
	Layout  []Cluster
	// Order is the order of the ranks of MPI_COMM_WORLD, in runs; nil for that of virtual rank.
	Order      []Cluster
	Forwarders []string // addresses of forwarders that this cluster reaches
	// HostKeys has the known host keys of Forwarders by address. It is empty with Zippers, which
	// have their own keys.
	HostKeys map[string]string
	Ticket   string
	Origin   string   // see VarOrigin
	Networks []string // networks without ranks that forwarders are on
	// Zippers has all forwarders of a job with several hops. If it is empty every cluster reaches
	// all of Forwarders.
	Zippers     []Zipper
	Dual        []Dual // addresses of this cluster's zipper nodes
	DirectAllow string // see ParseDirectAllow
	Timeout     time.Duration
	Log         string
	Poll        string
	Report      string
	Collectives string
	Protocol    string // empty or Classic
	Level       string // empty for the default
	Patience    string // a Go duration; empty for the default
	OnLoss      string // LossEnds, LossContinues, or empty for the default
	Quorum      string // QuorumRank0, QuorumBoth, or empty for the default
	InPlace     int    // bytes; 0 for never
	Cache       bool   // whether registrations of memory are kept
	Appnum      string // a number, or empty (VarAppnum)

	inPlaceGiven string
}

// Classic is the protocol of the original middleware: a handshake for every message, half duplex,
// store and forward.
const Classic = "classic"

// ParseProtocol checks the name of a protocol.
func ParseProtocol(s string) error {
	if s != "" && s != Classic {
		return fmt.Errorf("protocol %q: want %s, or nothing for the usual one", s, Classic)
	}
	return nil
}

// ErrNoJob means that ZIPPER_JOB is not set: the process is not part of a zipped job.
var ErrNoJob = errors.New("not part of a zipped job (ZIPPER_JOB is not set)")

// From reads the job from the environment. get returns a variable's value, or "". The error names
// the variable that is missing or wrong and its correct form; it is ErrNoJob if ZIPPER_JOB is not
// set.
//
// Nothing in this package reads the environment by itself: in a rank that would be Go's copy, which
// the program's setenv does not change.
func From(get func(string) string) (Job, error) {
	j := Job{ID: get(VarJob), Secret: get(VarSecret), Cluster: get(VarCluster), Timeout: defaultTimeout,
		Log: get(VarLog), Poll: get(VarPoll), Report: get(VarReport), Collectives: get(VarCollectives),
		Protocol: get(VarProtocol), Level: get(VarLevel), Patience: get(VarPatience), OnLoss: get(VarOnLoss), Quorum: get(VarQuorum), DirectAllow: get(VarDirectAllow), Appnum: get(VarAppnum)}
	if j.ID == "" {
		return Job{}, ErrNoJob
	}
	if f := get(VarSecretFile); j.Secret == "" && f != "" {
		var err error
		if j.Secret, err = ReadSecret(f, get); err != nil {
			return Job{}, fmt.Errorf("%s: %w", VarSecretFile, err)
		}
	}
	if j.Secret == "" {
		return Job{}, fmt.Errorf("set %s or %s to the job's secret", VarSecret, VarSecretFile)
	}
	if err := CheckSecret(j.Secret); err != nil {
		return Job{}, fmt.Errorf("%s: %w", VarSecret, err)
	}
	if j.Cluster == "" {
		return Job{}, fmt.Errorf("set %s to the name of this cluster", VarCluster)
	}
	var err error
	if j.Layout, err = ParseLayout(get(VarLayout)); err != nil {
		return Job{}, err
	}
	found := false
	for _, c := range j.Layout {
		found = found || c.Name == j.Cluster
	}
	if !found {
		return Job{}, fmt.Errorf("%s is %q, which %s=%q does not name", VarCluster, j.Cluster, VarLayout,
			get(VarLayout))
	}
	if j.Order, err = ParseOrder(get(VarOrder), j.Layout); err != nil {
		return Job{}, fmt.Errorf("%s: %w", VarOrder, err)
	}
	if s := get(VarNetworks); s != "" {
		j.Networks = strings.Split(s, ",")
		if err := CheckNetworks(j.Networks, j.Layout); err != nil {
			return Job{}, fmt.Errorf("%s: %w", VarNetworks, err)
		}
	}
	if err := j.forwarders(get(VarForwarders)); err != nil {
		return Job{}, err
	}
	if err := j.knowHostKeys(get); err != nil {
		return Job{}, err
	}
	if j.Ticket, err = Ticket(get); err != nil {
		return Job{}, err
	}
	if len(j.Forwarders) == 0 && len(j.Layout) > 1 {
		return Job{}, fmt.Errorf("set %s to the address of a forwarder, as in zip1:%d", VarForwarders, DefaultPort)
	}
	if t := get(VarTimeout); t != "" {
		if j.Timeout, err = time.ParseDuration(t); err != nil || j.Timeout <= 0 {
			return Job{}, fmt.Errorf("%s=%q: want a duration such as 60s", VarTimeout, t)
		}
	}
	if err := ParseProtocol(j.Protocol); err != nil {
		return Job{}, fmt.Errorf("%s: %w", VarProtocol, err)
	}
	if _, err := ParseLevel(j.Level, j.Protocol, j.Networks); err != nil {
		return Job{}, fmt.Errorf("%s: %w", VarLevel, err)
	}
	if _, err := ParsePatience(j.Patience); err != nil {
		return Job{}, fmt.Errorf("%s: %w", VarPatience, err)
	}
	if err := j.checkLoss(); err != nil {
		return Job{}, err
	}
	if j.Protocol != "" && max(len(j.Forwarders), len(j.Zippers)) > 1 {
		return Job{}, fmt.Errorf("%s=%s works with one forwarder, %s names %d", VarProtocol, j.Protocol,
			VarForwarders, len(j.Forwarders))
	}
	if j.Dual, err = ParseDual(get(VarDual)); err == nil {
		err = CheckDual(j.Dual, j.Cluster, j.Layout)
	}
	if err == nil && j.Protocol != "" && len(j.Dual) > 0 {
		err = fmt.Errorf("the protocol %s has no direct links", j.Protocol)
	}
	if err != nil {
		return Job{}, fmt.Errorf("%s: %w", VarDual, err)
	}
	if _, err := ParseDirectAllow(j.DirectAllow); err != nil {
		return Job{}, fmt.Errorf("%s: %w", VarDirectAllow, err)
	}
	if n, err := strconv.Atoi(j.Appnum); j.Appnum != "" && (err != nil || n < 0 || n > maxAppnum) {
		return Job{}, fmt.Errorf("%s=%q: want a number from 0 to %d", VarAppnum, j.Appnum, maxAppnum)
	}
	if err := j.memory(get); err != nil {
		return Job{}, err
	}
	switch j.Poll {
	case "":
		j.Poll = "adaptive"
	case "adaptive", "busy", "event":
	default:
		return Job{}, fmt.Errorf("%s=%q: want adaptive, busy or event", VarPoll, j.Poll)
	}
	return j, nil
}

// checkLoss checks OnLoss and Quorum.
func (j *Job) checkLoss() error {
	outlives, err := ParseOnLoss(j.OnLoss, j.Protocol)
	if err != nil {
		return fmt.Errorf("%s=%w", VarOnLoss, err)
	}
	if _, err := ParseQuorum(j.Quorum, outlives); err != nil {
		return fmt.Errorf("%s=%w", VarQuorum, err)
	}
	return nil
}

func (j *Job) memory(get func(string) string) error {
	switch s := get(VarCache); s {
	case "", "0":
	case "1":
		j.Cache = true
	default:
		return fmt.Errorf("%s=%q: want 1 or 0", VarCache, s)
	}
	if j.InPlace = inPlace; j.Cache {
		j.InPlace = inPlaceCached
	}
	if s := get(VarInPlace); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return fmt.Errorf("%s=%q: want a number of bytes, or 0 for never", VarInPlace, s)
		}
		j.InPlace, j.inPlaceGiven = n, s
	}
	return nil
}

// ParseLayout parses "a=4,b=2".
func ParseLayout(s string) ([]Cluster, error) {
	var l []Cluster
	seen := map[string]bool{}
	for _, part := range strings.Split(s, ",") {
		name, num, ok := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(num)
		if !ok || name == "" || err != nil || n < 1 || n > maxCluster {
			return nil, fmt.Errorf("%s=%q: want every cluster with its number of ranks, as in a=4,b=2", VarLayout, s)
		}
		if seen[name] {
			return nil, fmt.Errorf("%s=%q: cluster %q stands there twice", VarLayout, s, name)
		}
		seen[name] = true
		l = append(l, Cluster{Name: name, Size: n})
	}
	return l, nil
}

// FormatLayout is the inverse of ParseLayout.
func FormatLayout(l []Cluster) string { return vrank.Format(l) }

// Environ returns the variables that make a child process part of the job.
func (j Job) Environ() []string {
	e := []string{VarJob + "=" + j.ID, VarSecret + "=" + j.Secret, VarCluster + "=" + j.Cluster, VarLayout +
		"=" + FormatLayout(j.Layout),
		VarForwarders + "=" + j.forwarderList(), VarTimeout + "=" + j.Timeout.String()}
	for _, v := range [][2]string{{VarOrder, FormatOrder(j.Order)}, {VarTicket, j.Ticket}, {VarOrigin, j.Origin},
		{VarNetworks, strings.Join(j.Networks, ",")}, {VarLog, j.Log}, {VarPoll, j.Poll},
		{VarReport, j.Report}, {VarCollectives, j.Collectives}, {VarProtocol, j.Protocol},
		{VarLevel, j.Level}, {VarPatience, j.Patience}, {VarOnLoss, j.OnLoss}, {VarQuorum, j.Quorum}, {VarDual, FormatDual(j.Dual)},
		{VarDirectAllow, j.DirectAllow}, {VarAppnum, j.Appnum},
		{VarInPlace, j.inPlaceGiven}, {VarCache, map[bool]string{true: "1"}[j.Cache]}} {
		if v[1] != "" {
			e = append(e, v[0]+"="+v[1])
		}
	}
	return e
}

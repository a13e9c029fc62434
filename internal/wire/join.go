package wire

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/internal/facts"
)

// FactsSince is the first version of the protocol in which a Join and a Layout have facts. Before,
// a Join names the processor.
const FactsSince = 13

// These are limits of the values in a Join.
const (
	MaxClusters = 256
	MaxRanks    = 1 << 20 // virtual ranks of one job, because tables have an entry for each
	MaxZippers  = 64      // forwarders of a job with several hops
	MaxNetworks = 64      // networks of such a job that have no ranks
	MaxTicket   = 2048    // bytes
	MaxJoin     = 64 << 10

	MaxPatience = 24 * 3600 * 1000 // milliseconds
)

// These are the sizes of keys and signatures (Ed25519) in bytes.
const (
	PublicKeyLen = 32
	SignatureLen = 64
)

// These are the sizes of the keys of sealed jobs (X25519) and of their proofs, in bytes.
const (
	SealKeyLen   = 32
	SealProofLen = 16
)

// Cluster is one entry of a job's layout.
type Cluster struct {
	Name string
	Size uint32 // number of ranks, at least 1
}

// Zipper is a forwarder of a job with several hops: the networks that it is on, and the host key
// (Ed25519) that it must have; zero allows any key.
type Zipper struct {
	Ports   []Port
	HostKey [PublicKeyLen]byte
}

// Port is a zipper's place on a network: a cluster's, or one without ranks.
type Port struct {
	Network uint16 // index in the layout; from its end on, index in the networks without ranks
	Address string // may be empty on a network without ranks: then the forwarder does not listen there
}

// Join is the request to join a job as one native rank of one cluster.
//
//	u32       version
//	u32       timeout_ms  time for which the joiner waits for the others; 0: it only says goodbye to a job that it was in
//	string    job         strings are a u16 length and UTF-8 bytes, at most MaxName
//	string    cluster
//	u32       rank        native rank in that cluster
//	u32       tag_ub      highest tag the cluster's MPI library allows
//	string    library     such as "Open MPI 4.1.4", for people
//	u32       facts       format of data in memory (facts.Word); before version 13: string model, such as "amd64 little endian"
//	string    protocol    protocol of messages: empty, or "classic"; the forwarder must use the same
//	string    settings    further settings that must be equal in the whole job, as NAME=VALUE words; a process that reconnects adds the lost clusters (package handshake)
//	string    host
//	string    origin      user and batch job of the process, as it claims: words user=NAME, SCHEDULER=ID and arch=NAME; empty: not given
//	u16       level       protection of the job's frames in transit (Level)
//	u32       patience_ms time for which a rank out of reach is waited for, if it is not known to be dead; at most MaxPatience
//	u16       rails       number of forwarders that the rank joins, including this one, at least 1
//	u64       instance    random, the same in all Joins of one process, which alone may replace a lost link
//	u16       clusters    then for each: string name, u32 size
//	u16       networks    of a job with several hops that have no ranks; then for each: string name
//	u16       zippers     forwarders of such a job, 0 for others; then for each: u16 ports, for each: u16 network, string address; then byte[32] host key
//	u16       here        index of the forwarder that this link goes to
//	u16       doors       addresses at which ranks of other clusters reach this one without a forwarder, at most one per cluster; for each: u16 cluster, string address
//	string    inside      IP address and port at which the rank accepts connections that the forwarder's kernel passes on; empty: none
//	byte[32]  seal key    the process's X25519 key, the same in all its Joins; zero: its job is not sealed
//	byte[16]  proof       proof that the sender knows the job's secret (package seal)
//	byte[32]  link key    of the forwarder, as the Challenge has it
//	string    ticket      ticket of the job, for forwarders that demand one (package ticket), at most MaxTicket; empty: none
//	byte[32]  nonce       random bytes for this link, for the forwarder's Proof
//	byte[32]  public key  of the pair made from job and secret
//	byte[32]  guest       public half of the job's X25519 pair, for its passes (package seal)
//	byte[64]  signature   by the job's pair over the nonce and all of the above
//	byte[16]  pass        made with the pass for this forwarder over the nonce and all of the above
type Join struct {
	Version   uint32
	TimeoutMS uint32
	Job       string
	Cluster   string
	Rank      uint32
	TagUB     uint32
	Library   string
	Facts     facts.Word
	Model     string // processor and byte order, which must be equal in all clusters; before version 13 only
	Protocol  string
	Settings  string
	Host      string
	Origin    string
	Level     Level
	Patience  uint32 // in milliseconds
	Rails     uint16
	Instance  uint64
	Layout    []Cluster
	Networks  []string
	Zippers   []Zipper
	Here      uint16
	Doors     []Port
	Inside    string
	SealKey   [SealKeyLen]byte
	Proof     [SealProofLen]byte
	LinkKey   [SealKeyLen]byte
	Ticket    string
	Nonce     [NonceLen]byte
	PublicKey [PublicKeyLen]byte
	Guest     [SealKeyLen]byte
	Signature [SignatureLen]byte
	Pass      [SealProofLen]byte
}

// AppendUnsigned appends everything before the signature: the text that is signed.
func (j *Join) AppendUnsigned(b []byte) []byte {
	b = le.AppendUint32(b, j.Version)
	b = le.AppendUint32(b, j.TimeoutMS)
	b = appendString(b, j.Job)
	b = appendString(b, j.Cluster)
	b = le.AppendUint32(b, j.Rank)
	b = le.AppendUint32(b, j.TagUB)
	b = appendString(b, j.Library)
	if j.Version >= FactsSince {
		b = le.AppendUint32(b, uint32(j.Facts))
	} else {
		b = appendString(b, j.Model)
	}
	b = appendString(b, j.Protocol)
	b = appendString(b, j.Settings)
	b = appendString(b, j.Host)
	b = appendString(b, j.Origin)
	b = le.AppendUint16(b, uint16(j.Level))
	b = le.AppendUint32(b, j.Patience)
	b = le.AppendUint16(b, j.Rails)
	b = le.AppendUint64(b, j.Instance)
	b = appendClusters(b, j.Layout)
	b = le.AppendUint16(b, uint16(len(j.Networks)))
	for _, n := range j.Networks {
		b = appendString(b, n)
	}
	b = le.AppendUint16(b, uint16(len(j.Zippers)))
	for _, z := range j.Zippers {
		b = append(appendPorts(b, z.Ports), z.HostKey[:]...)
	}
	b = le.AppendUint16(b, j.Here)
	b = appendPorts(b, j.Doors)
	b = appendString(b, j.Inside)
	b = append(b, j.SealKey[:]...)
	b = append(b, j.Proof[:]...)
	b = append(b, j.LinkKey[:]...)
	b = appendString(b, j.Ticket)
	b = append(b, j.Nonce[:]...)
	b = append(b, j.PublicKey[:]...)
	return append(b, j.Guest[:]...)
}

// AppendUnshown appends everything before the pass: the text that the pass authenticates.
func (j *Join) AppendUnshown(b []byte) []byte {
	return append(j.AppendUnsigned(b), j.Signature[:]...)
}

// Sealed reports whether the joiner's job is sealed.
func (j *Join) Sealed() bool { return j.SealKey != [SealKeyLen]byte{} }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (j *Join) Append(b []byte) []byte {
	return append(j.AppendUnshown(b), j.Pass[:]...)
}

// ParseJoin parses a Join that fills b. If this end does not support the version only Version is
// set. A parsed Join names a cluster of its own layout and a rank inside it. Signature and pass are
// not checked here.
func ParseJoin(b []byte) (Join, error) {
	r := reader{b: b}
	j := Join{Version: r.u32()}
	if r.err == nil && !Speaks(j.Version) {
		return j, nil
	}
	j.TimeoutMS = r.u32()
	j.Job = r.name()
	if strings.ContainsFunc(j.Job, notInJobID) {
		r.fail(fmt.Errorf("wire: job id %q: letters, digits, '.', '_', '-' and '#' are allowed", j.Job))
	}
	j.Cluster = r.name()
	j.Rank = r.u32()
	j.TagUB = r.u32()
	j.Library = r.name()
	if j.Version >= FactsSince {
		j.Facts = facts.Word(r.u32())
	} else {
		j.Model = r.name()
	}
	j.Protocol = r.name()
	j.Settings = r.name()
	j.Host = r.name()
	j.Origin = r.name()
	level := r.u16()
	if r.err == nil && int(level) >= len(levelNames) {
		r.fail(fmt.Errorf("wire: unknown level %d", level))
	}
	j.Level = Level(level)
	if j.Patience = r.u32(); r.err == nil && j.Patience > MaxPatience {
		r.fail(fmt.Errorf("wire: patience of %d ms, at most %d allowed", j.Patience, MaxPatience))
	}
	j.Rails = r.u16()
	j.Instance = r.u64()
	j.Layout = r.clusters()
	j.Networks = r.networks(j.Layout)
	j.Zippers = r.zippers(len(j.Layout), len(j.Networks))
	j.Here = r.u16()
	if int(j.Here) >= max(1, len(j.Zippers)) {
		r.fail(fmt.Errorf("wire: forwarder %d of %d", j.Here, len(j.Zippers)))
	}
	doors := int(r.u16())
	if r.err == nil && doors >= max(1, len(j.Layout)) {
		r.fail(fmt.Errorf("wire: %d doors for %d other clusters", doors, len(j.Layout)-1))
	}
	j.Doors = r.ports(doors, len(j.Layout))
	j.Inside = r.name()
	r.bytes(j.SealKey[:])
	r.bytes(j.Proof[:])
	r.bytes(j.LinkKey[:])
	j.Ticket = r.text(MaxTicket)
	r.bytes(j.Nonce[:])
	r.bytes(j.PublicKey[:])
	r.bytes(j.Guest[:])
	r.bytes(j.Signature[:])
	r.bytes(j.Pass[:])
	if err := r.end(); err != nil {
		return Join{Version: j.Version}, err
	}
	if (j.Level == LevelSealed) != j.Sealed() {
		return j, fmt.Errorf("wire: level %v, and a key for sealing: %v", j.Level, j.Sealed())
	}
	if j.Rails == 0 {
		return j, fmt.Errorf("wire: a rank that joins no forwarder")
	}
	for i, c := range j.Layout {
		if c.Name == j.Cluster {
			if j.Rank >= c.Size {
				return j, fmt.Errorf("wire: rank %d in cluster %q of %d", j.Rank, c.Name, c.Size)
			}
			for _, d := range j.Doors {
				if int(d.Network) == i || d.Address == "" {
					return j, fmt.Errorf("wire: door %q for the rank's own cluster, or without an address", d.Address)
				}
			}
			return j, nil
		}
	}
	return j, fmt.Errorf("wire: cluster %q is not in its own layout", j.Cluster)
}

func notInJobID(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._-#", c)
}

// Ranks returns the number of ranks of a layout's clusters.
func Ranks(l []Cluster) int {
	n := 0
	for _, c := range l {
		n += int(c.Size)
	}
	return n
}

func appendClusters(b []byte, l []Cluster) []byte {
	b = le.AppendUint16(b, uint16(len(l)))
	for _, c := range l {
		b = le.AppendUint32(appendString(b, c.Name), c.Size)
	}
	return b
}

// clusters reads a layout and checks it: 1 to MaxClusters different names, none empty, at most
// MaxRanks ranks.
func (r *reader) clusters() []Cluster {
	n := int(r.u16())
	if r.err == nil && (n == 0 || n > MaxClusters) {
		r.fail(fmt.Errorf("wire: layout of %d clusters, want 1 to %d", n, MaxClusters))
	}
	if r.err != nil {
		return nil
	}
	l := make([]Cluster, 0, n)
	seen := make(map[string]bool, n)
	total := uint64(0)
	for range n {
		c := Cluster{r.name(), r.u32()}
		total += uint64(c.Size)
		switch {
		case r.err != nil:
			return nil
		case c.Name == "" || c.Size == 0 || seen[c.Name] || total > MaxRanks:
			r.fail(fmt.Errorf("wire: bad layout at cluster %q of %d ranks (names must differ, sizes be at least 1, the sum at most %d)", c.Name, c.Size, MaxRanks))
			return nil
		}
		seen[c.Name] = true
		l = append(l, c)
	}
	return l
}

// networks reads the names of networks without ranks. It checks that each is different from all
// others and from those of clusters.
func (r *reader) networks(layout []Cluster) []string {
	n := int(r.u16())
	if r.err == nil && n > MaxNetworks {
		r.fail(fmt.Errorf("wire: %d networks without ranks, at most %d allowed", n, MaxNetworks))
	}
	var l []string
	for i := 0; i < n && r.err == nil; i++ {
		name := r.name()
		cluster := slices.ContainsFunc(layout, func(c Cluster) bool { return c.Name == name })
		if r.err == nil && (name == "" || cluster || slices.Contains(l, name)) {
			r.fail(fmt.Errorf("wire: network %q: its name is empty or not its own", name))
		}
		l = append(l, name)
	}
	return l
}

// zippers reads the forwarders of a job with several hops. It checks that they are on networks of
// the job.
func (r *reader) zippers(clusters, networks int) []Zipper {
	n := int(r.u16())
	if r.err == nil && n > MaxZippers {
		r.fail(fmt.Errorf("wire: %d zippers, at most %d allowed", n, MaxZippers))
	}
	var l []Zipper
	for i := 0; i < n && r.err == nil; i++ {
		ports := int(r.u16())
		if r.err == nil && (ports == 0 || ports > clusters+networks) {
			r.fail(fmt.Errorf("wire: zipper on %d of %d networks", ports, clusters+networks))
		}
		z := Zipper{Ports: r.ports(ports, clusters+networks)}
		r.bytes(z.HostKey[:])
		l = append(l, z)
	}
	return l
}

func appendPorts(b []byte, ports []Port) []byte {
	b = le.AppendUint16(b, uint16(len(ports)))
	for _, p := range ports {
		b = appendString(le.AppendUint16(b, p.Network), p.Address)
	}
	return b
}

// ports reads n ports.
func (r *reader) ports(n, networks int) (l []Port) {
	for i := 0; i < n && r.err == nil; i++ {
		p := Port{r.u16(), r.name()}
		if r.err == nil && int(p.Network) >= networks {
			r.fail(fmt.Errorf("wire: address on network %d of %d", p.Network, networks))
		}
		l = append(l, p)
	}
	return l
}

// Architecture returns the name of this process's processor architecture as `uname -m` prints it:
// x86_64 or aarch64.
func Architecture() string {
	return cmp.Or(map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH], runtime.GOARCH)
}

// archWord begins the word of an origin that names the architecture.
const archWord = "arch="

// WithArch returns an origin (Join.Origin) with a word for an architecture, arch=NAME, behind it.
func WithArch(origin, arch string) string { return origin + " " + archWord + arch }

// CutArch returns an origin without its words for an architecture, and the architecture, or "" if
// the origin names none.
func CutArch(origin string) (rest, arch string) {
	words := slices.DeleteFunc(strings.Fields(origin), func(w string) bool {
		name, is := strings.CutPrefix(w, archWord)
		if is {
			arch = name
		}
		return is
	})
	return strings.Join(words, " "), arch
}

package wire

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/facts"
)

// Layout tells a joiner that the job is complete, and lists its ranks. Virtual ranks count through
// the clusters in this order.
//
//	u32     rank      the joiner's virtual rank
//	u32     tag_ub    the lowest of all ranks' tag_ub
//	u16     clusters  then for each: string name, u32 size
//	u16     libraries one per cluster: string library
//	        facts     one per cluster: u32 facts (facts.Word); absent before version 13
//	u32     namesake  1 if a host of another cluster has the name of the joiner's, else 0
//	u32     doors     then for each: u32 rank, u64 instance, u16 cluster, string address
//	u32     keys      of a sealed job as many as there are ranks, else none; for each: u64 instance, byte[32] seal key,
//	                  byte[16] proof, as in its Join
type Layout struct {
	Version   uint32 // version of the link's Join, which is not a part of the frame
	Rank      uint32
	TagUB     uint32
	Clusters  []Cluster
	Libraries []string     // library of each cluster
	Facts     []facts.Word // facts of each cluster; nil before version 13
	Namesake  bool         // whether a host of another cluster has the name of the joiner's
	Doors     []Door
	Keys      []SealKey // key of each virtual rank; nil if the job is not sealed
}

// SealKey is the public key of a rank, with which others derive the keys of their frames to it.
type SealKey struct {
	Instance uint64
	Key      [SealKeyLen]byte
	Proof    [SealProofLen]byte
}

// Door is the address at which the ranks of another cluster reach a rank without a forwarder.
type Door struct {
	Rank     uint32 // virtual rank
	Instance uint64 // instance in its Join
	Port
}

// Ranks returns the number of virtual ranks.
func (l *Layout) Ranks() int {
	n := 0
	for _, c := range l.Clusters {
		n += int(c.Size)
	}
	return n
}

// ClusterOf returns the index of the cluster of a virtual rank below Ranks(), and its native rank
// there.
func (l *Layout) ClusterOf(rank int) (cluster, native int) {
	for i, c := range l.Clusters {
		if rank < int(c.Size) {
			return i, rank
		}
		rank -= int(c.Size)
	}
	return -1, -1
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (l *Layout) Append(b []byte) []byte {
	b = le.AppendUint32(b, l.Rank)
	b = le.AppendUint32(b, l.TagUB)
	b = appendClusters(b, l.Clusters)
	b = le.AppendUint16(b, uint16(len(l.Libraries)))
	for _, s := range l.Libraries {
		b = appendString(b, s)
	}
	if l.Version >= FactsSince {
		for _, f := range l.Facts {
			b = le.AppendUint32(b, uint32(f))
		}
	}
	namesake := uint32(0)
	if l.Namesake {
		namesake = 1
	}
	b = le.AppendUint32(b, namesake)
	b = le.AppendUint32(b, uint32(len(l.Doors)))
	for _, d := range l.Doors {
		b = le.AppendUint64(le.AppendUint32(b, d.Rank), d.Instance)
		b = appendString(le.AppendUint16(b, d.Network), d.Address)
	}
	b = le.AppendUint32(b, uint32(len(l.Keys)))
	for i := range l.Keys {
		k := &l.Keys[i]
		b = append(append(le.AppendUint64(b, k.Instance), k.Key[:]...), k.Proof[:]...)
	}
	return b
}

// ParseLayout parses a Layout of a version of the protocol that fills b. Every index in the result
// is in range.
func ParseLayout(b []byte, version uint32) (Layout, error) {
	r := reader{b: b}
	l := Layout{Version: version, Rank: r.u32(), TagUB: r.u32(), Clusters: r.clusters()}
	if n := int(r.u16()); r.err == nil && n != len(l.Clusters) {
		r.fail(fmt.Errorf("wire: %d libraries for %d clusters", n, len(l.Clusters)))
	}
	for range l.Clusters {
		l.Libraries = append(l.Libraries, r.name())
	}
	for i := 0; i < len(l.Clusters) && version >= FactsSince; i++ {
		l.Facts = append(l.Facts, facts.Word(r.u32()))
	}
	ranks := l.Ranks()
	switch n := r.u32(); {
	case n > 1:
		r.fail(fmt.Errorf("wire: namesake is %d, want 0 or 1", n))
	case n == 1:
		l.Namesake = true
	}
	doors := int(r.u32())
	for i := 0; i < doors && r.err == nil; i++ {
		d := Door{r.u32(), r.u64(), Port{r.u16(), r.name()}}
		if r.err == nil && (int(d.Rank) >= ranks || int(d.Network) >= len(l.Clusters) || d.Address == "") {
			r.fail(fmt.Errorf("wire: door %q of rank %d of %d for cluster %d of %d", d.Address, d.Rank, ranks,
				d.Network, len(l.Clusters)))
		}
		l.Doors = append(l.Doors, d)
	}
	keys := int(r.u32())
	if r.err == nil && keys != 0 && keys != ranks {
		r.fail(fmt.Errorf("wire: %d keys for %d ranks", keys, ranks))
	}
	for i := 0; i < keys && r.err == nil; i++ {
		k := SealKey{Instance: r.u64()}
		r.bytes(k.Key[:])
		r.bytes(k.Proof[:])
		l.Keys = append(l.Keys, k)
	}
	if r.err == nil && int(l.Rank) >= ranks {
		r.fail(fmt.Errorf("wire: rank %d of %d", l.Rank, ranks))
	}
	if err := r.end(); err != nil {
		return Layout{}, err
	}
	return l, nil
}

// Place returns the cluster and native rank of a virtual rank. Beyond the last rank it returns "?"
// and the excess.
func Place(clusters []Cluster, rank uint32) (cluster string, native int) {
	n := int(rank)
	for _, c := range clusters {
		if n < int(c.Size) {
			return c.Name, n
		}
		n -= int(c.Size)
	}
	return "?", n
}

package solve

import (
	"errors"

	"github.com/leidenzipper/zipper/contention/num"
)

// Pipelined returns the time of a message through a relay that receives and sends segments of at
// most segment bytes with a thread for each side:
//
//	in_k = in_(k-1) + S_k/in;  out_k = max(in_k, out_(k-1)) + S_k/out
//
// in and out are the rates of the two sides. One segment for the whole message is store and
// forward.
func Pipelined[T num.Number[T]](bytes, segment, in, out T) (T, error) {
	var received, sent T
	if bytes.Sign() < 0 || segment.Sign() <= 0 || in.Sign() <= 0 || out.Sign() <= 0 {
		return sent, errors.New("segment size and rates must be positive")
	}
	// All segments but the last are equal. After the first one they leave at intervals of max(S/in,
	// S/out).
	full := int64(bytes.Div(segment).Float64())
	for full > 0 && num.Int[T](full).Mul(segment).Cmp(bytes) > 0 {
		full--
	}
	if full > 0 {
		k := num.Int[T](full)
		received = k.Mul(segment).Div(in)
		slower := num.Max(segment.Div(in), segment.Div(out))
		sent = segment.Div(in).Add(segment.Div(out)).Add(k.Sub(num.Int[T](1)).Mul(slower))
	}
	if last := bytes.Sub(num.Int[T](full).Mul(segment)); last.Sign() > 0 {
		received = received.Add(last.Div(in))
		sent = num.Max(received, sent).Add(last.Div(out))
	}
	return sent, nil
}

// Blocking returns the time in seconds of a message of some bytes through a relay whose one thread
// receives a segment at the rate in, then sends it at the rate out, both in bytes/s. It is the same
// for every segment size.
func Blocking[T num.Number[T]](bytes, in, out T) T {
	return bytes.Div(in).Add(bytes.Div(out))
}

// UsefulZippers returns the largest useful number of equal zippers (N*): the rate that the clusters
// can send, carry and receive, divided by that of one zipper. All rates are in the crossing
// direction; a backbone of 0 means that there is no backbone.
func UsefulZippers[T num.Number[T]](senders, up, receivers, down, portIn, forwarder, portOut T) int {
	least := func(xs ...T) T {
		var m T
		for _, x := range xs {
			if x.Sign() > 0 && (m.Sign() == 0 || x.Cmp(m) < 0) {
				m = x
			}
		}
		return m
	}
	clusters, one := least(senders, up, receivers, down), least(portIn, forwarder, portOut)
	if clusters.Sign() == 0 || one.Sign() == 0 {
		return 0
	}
	n := int(clusters.Div(one).Float64())
	for num.Int[T](int64(n)).Mul(one).Cmp(clusters) < 0 {
		n++
	}
	for n > 1 && num.Int[T](int64(n-1)).Mul(one).Cmp(clusters) >= 0 {
		n--
	}
	return n
}

// Split returns the optimal static stripes of a message of some bytes over paths with the given
// simultaneous rates: bytes in proportion to the rates, by path.
func Split[T num.Number[T]](bytes T, rates []T) []T {
	var sum T
	for _, r := range rates {
		sum = sum.Add(r)
	}
	parts := make([]T, len(rates))
	for i, r := range rates {
		parts[i] = bytes.Mul(r).Div(sum)
	}
	return parts
}

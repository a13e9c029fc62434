package predict

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/contention/platform"
)

// TestGoAheadWaits checks that by the rule buffered the go-ahead for a message, and also a small
// message, waits behind the bytes that the receiver's connection holds for others.
func TestGoAheadWaits(t *testing.T) {
	const file = `
clusters: [{name: a, hosts: 2, nic: 10 MB/s}, {name: b, hosts: 2, nic: 10 MB/s}]
zippers: [{name: z, ports: {a: 100 MB/s, b: 100 MB/s}, handshake: 4ms, eager: 1KB, socket: %s}]
`
	bulk := platform.Message{From: "b1", To: "a2", Bytes: big.NewRat(20e6, 1)}
	for _, x := range []struct {
		socket   string
		message  platform.Message
		alone    float64 // s
		queueing float64 // s
	}{
		{"0B", platform.Message{From: "a1", To: "b1", Bytes: big.NewRat(1e6, 1)}, 0.104, 0},
		{"500KB", platform.Message{From: "a1", To: "b1", Bytes: big.NewRat(1e6, 1)}, 0.104, 0.05},
		{"500KB", platform.Message{From: "b1", To: "a1", Bytes: big.NewRat(1000, 1)}, 0.0001, 0.05},
		{"500KB", platform.Message{From: "a1", To: "b2", Bytes: big.NewRat(1e6, 1)}, 0.104, 0},
	} {
		p, err := platform.Read(strings.NewReader(fmt.Sprintf(file, x.socket)))
		if err != nil {
			t.Fatal(err)
		}
		x.message.Start = big.NewRat(1, 2)
		for behind, messages := range map[bool][]platform.Message{false: {x.message}, true: {x.message, bulk}} {
			r, err := Run(p, messages, Options{Sharing: "buffered"})
			if err != nil {
				t.Fatal(err)
			}
			want := x.alone
			if behind {
				want += x.queueing
			}
			if took := r.Messages[0].Finish - r.Messages[0].Start; math.Abs(took-want) > 0.01*want+0.002 {
				t.Errorf("socket %s, %s to %s, bulk %v: took %.4f s, want %.4f", x.socket, x.message.From, x.message.To,
					behind, took, want)
			}
		}
	}
}

// TestSenderFinishesWhenBytesFitSocket checks when a sender has finished with a message: by the
// rule buffered when no more of it is unsent than the socket holds, by other rules when it has
// arrived.
func TestSenderFinishesWhenBytesFitSocket(t *testing.T) {
	const file = `
clusters: [{name: a, hosts: 1, nic: 10 MB/s}, {name: b, hosts: 2, nic: 1 MB/s}]
zippers: [{name: z, ports: {a: 100 MB/s, b: 100 MB/s}, eager: 10MB, socket: %s}]
`
	messages := []platform.Message{
		{From: "a1", To: "b1", Bytes: big.NewRat(3e6, 1)},
		{From: "a1", To: "b2", Bytes: big.NewRat(1000, 1), Sent: []int{0}},
		{From: "a1", To: "b2", Bytes: big.NewRat(1000, 1), After: []int{0}},
	}
	for _, x := range []struct {
		socket, sharing string
		want            float64 // s
	}{{"0B", "buffered", 0.3}, {"500KB", "buffered", 0.25}, {"500KB", "max-min", 3}} {
		p, err := platform.Read(strings.NewReader(fmt.Sprintf(file, x.socket)))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(p, messages, Options{Sharing: x.sharing})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []float64{0, x.want, 3} {
			if got := r.Messages[i].Start; math.Abs(got-want) > 0.01*want {
				t.Errorf("socket %s, %s: message %d started at %.4f s, want %.4f", x.socket, x.sharing, i, got, want)
			}
		}
	}
}

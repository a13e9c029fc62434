// Package contend measures contention: it calibrates a platform (zipper calibrate) and sets
// measured against predicted transfers, many at once (zipper bench contention). Transfers are moved
// by package transfer, models are in contention/.
package contend

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/transfer"
)

// Site is what can be measured: two or more clusters and the zippers between them.
type Site struct {
	Name     string
	Clusters []Cluster
	Zippers  []Zipper
	InFlight int // bytes of a connection that are on the way at most, as far as is known
	Packet   int // bytes; 0: not known
	Burst    int // bytes that a limited link lets pass at once; 0: none, or not known
	Machine  int // cores, if all hosts are one machine; 0: each has its own
	Session  *transfer.Session
}

// Cluster is a cluster's hosts.
type Cluster struct {
	Name  string
	Hosts []string
	Cores int
}

// Zipper is a zipper node with an agent and a forwarder; its index is the Via of messages.
type Zipper struct {
	Name  string
	Cores int
}

// Lab is a site in namespaces.
type Lab struct {
	Site
	lab *lab.Lab
}

// OpenLab makes a lab of n hosts a cluster and z zippers. All links are shaped to the rate, with a
// queue of the kind "fifo" or "peers" (see scripts/lab). Close it in any case when the error is
// nil.
func OpenLab(ctx context.Context, name string, n, z int, rate, queue string, log *os.File) (l *Lab, err error) {
	// What is measured is the sharing of links, not TCP's search for its rate. What a sender may
	// have on the way is fixed, by its buffer, and less than the queues take. So nothing is ever
	// lost, and the queues alone decide a share. The receiver's window does not fix it, since
	// acknowledgements overtake here: Linux throws away data with one that is older than the newest
	// by more than the largest window (RFC 5961), or that has an older timestamp (PAWS). Where a
	// host was sent more than it sent, its own data were lost so, and TCP went slow for seconds.
	// Long packets and forwarders that do not spin leave the processors idle for the most part.
	cfg := lab.Config{Name: name, Rate: rate, Burst: fmt.Sprint(burst/1024, "kb"), Queue: queue, MTU: strconv.Itoa(packet), Log: log,
		ForwarderOptions: []string{"--poll", "event"},
		Sysctl: []string{lab.Reno, "net.ipv4.tcp_timestamps=0", fmt.Sprintf("net.ipv4.tcp_rmem=4096 %d %[1]d", receive),
			fmt.Sprintf("net.ipv4.tcp_wmem=4096 %d %[1]d", send)}}
	for i := range n {
		cfg.NodesA = append(cfg.NodesA, "a"+strconv.Itoa(i+1))
		cfg.NodesB = append(cfg.NodesB, "b"+strconv.Itoa(i+1))
	}
	for i := range z {
		cfg.Zippers = append(cfg.Zippers, "z"+strconv.Itoa(i+1))
	}
	l = &Lab{Site: Site{Name: "lab", Clusters: []Cluster{{"a", cfg.NodesA, 1}, {"b", cfg.NodesB, 1}}, InFlight: window,
		Packet: packet, Burst: burst, Machine: runtime.NumCPU()}}
	if l.lab, err = lab.Up(ctx, cfg); err != nil {
		return nil, err
	}
	var hosts []transfer.Host
	add := func(node, cluster string) {
		hosts = append(hosts, transfer.Host{Name: node, Cluster: cluster,
			Agent: l.lab.On(node, l.lab.Zipper(), "bench", "agent")})
		hosts[len(hosts)-1].Agent.Stderr = os.Stderr
	}
	for _, c := range l.Clusters {
		for _, h := range c.Hosts {
			add(h, c.Name)
		}
	}
	var forwarders []transfer.Forwarder
	for _, node := range cfg.Zippers {
		add(node, "")
		l.Zippers = append(l.Zippers, Zipper{Name: node})
		address := node + ":7475"
		forwarders = append(forwarders, transfer.Forwarder{Name: node,
			Address: map[string]string{"a": address, "b": address}})
	}
	if l.Session, err = transfer.Open(hosts, forwarders); err != nil {
		_ = l.lab.Down() // the first error is the cause
		return nil, err
	}
	l.Session.OneMachine = true
	return l, nil
}

// Close removes the lab.
func (l *Lab) Close() error {
	err := l.Session.Close()
	if derr := l.lab.Down(); err == nil {
		err = derr
	}
	return err
}

// Package contend measures contention: it calibrates a platform (zipper calibrate) and compares
// measured with predicted transfers, many at once (zipper bench contention). Package transfer moves
// the data; the models are in contention/.
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

// Site is a place for measurements: two or more clusters and the zippers between them.
type Site struct {
	Name     string
	Clusters []Cluster
	Zippers  []Zipper
	// InFlight is the largest number of bytes in flight on a connection, as far as that is known.
	InFlight int
	// Packet is the size of a packet in bytes; 0: unknown.
	Packet int
	// Burst is the number of bytes that a limited link passes at once; 0: none, or unknown.
	Burst int
	// Machine is the number of cores if all hosts are one machine; 0: each host has its own.
	Machine int
	Session *transfer.Session
}

// Cluster describes a cluster's hosts.
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
// queue of the kind "fifo" or "peers" (see scripts/lab). The caller must close the lab when the
// error is nil.
func OpenLab(ctx context.Context, name string, n, z int, rate, queue string, log *os.File) (l *Lab, err error) {
	// The sharing of links is measured, not TCP's search for its rate. A sender's buffer fixes its
	// bytes in flight, and they are fewer than the queues hold. So nothing is ever lost, and the
	// queues alone decide a share. The receiver's window does not fix it, because acknowledgements
	// overtake here: Linux discards data with an acknowledgement that is older than the newest by
	// more than the largest window (RFC 5961), or that has an older timestamp (PAWS). Hosts that
	// received more than they sent lost their own data in that way, and TCP went slow for seconds.
	// With long packets and forwarders that do not spin, the processors are mostly idle.
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

// Package calibrate turns measured rates into a platform file. It does not measure. The caller
// measures and passes Samples, in this order, so that each step can use the one before:
//
//  1. lone large messages: host to host, host to zipper and back, per cluster;
//  2. one message out of a host with none and with many coming in;
//  3. the graphs of messages that tell the readings of penalty rule (b) apart;
//  4. one message through a zipper, in each direction and both at once;
//  5. many messages from different hosts through one zipper, copies in its memory;
//  6. messages that may use all zippers.
//
// Write does no I/O except to its writer. The comments of the file that it writes have the
// uncertainty of each number.
package calibrate

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/contention/fit"
	"github.com/leidenzipper/zipper/contention/platform"
)

// Cluster has the measurements in one cluster. Rates are in bytes/s, one per repetition, and
// latencies in seconds.
type Cluster struct {
	Name  string
	Hosts []string  // names of the hosts that were measured
	Cores int       // cores of each host
	Lone  []float64 // rates of a lone message from host to host
	// OutAlone and OutBusy are rates of a message out of a host that receives nothing, and out of
	// one that receives from several hosts; empty if not measured.
	OutAlone, OutBusy []float64
	Latency           []float64 // one-way latency of small messages
	Graphs            []Timed   // messages that start together, with their measured times
	Costs             []Costs   // costs of the hosts' processors; empty if not measured
}

// Costs are the processor times of operations, in seconds.
type Costs struct {
	Switch float64 `json:"switch_s"` // time from waking a thread until it runs
	Call   float64 `json:"call_s"`   // time of one read or write
	Byte   float64 `json:"byte_s"`   // time for each byte read or written
}

// Links are the processor times of a machine for links that are its own work, in seconds per packet
// and per byte.
type Links struct{ Packet, Byte float64 }

// Zipper has the measurements of one zipper node. Maps are by cluster, or by direction "a>b".
type Zipper struct {
	Name    string
	Cores   int                  // cores of the node
	In, Out map[string][]float64 // rates of lone messages into and out of the zipper
	// Single has rates of one message through the forwarder, Both of one message beside another one
	// in the opposite direction, and Many the total rates of messages from several hosts.
	Single, Both, Many map[string][]float64
	// Bytes is the size in bytes of each message of Single, Both and Many; 0 if so large that
	// Segment does not matter.
	Bytes   int
	Through []float64 // measured one-way latencies of a small message between clusters, in seconds
	// Handshake is the delay before the first byte of a message of more than Eager bytes, in
	// seconds; empty if not known.
	Handshake []float64
	Eager     int // size of the longest message without that delay, in bytes
	// Copies are rates at which one thread copies memory there, in bytes/s.
	Copies []float64
	Costs  []Costs // costs of the node's processors; empty if not measured
	// Segment is the longest piece that the forwarder receives completely before it sends it on, in
	// bytes; 0 if it cuts through.
	Segment int
	// Socket is the number of bytes of a connection that nothing overtakes: those that a socket
	// holds unsent and, where known, those in flight; 0 if not known.
	Socket int
}

// Samples has all measurements of a calibration.
type Samples struct {
	Name     string // name of the platform
	Clusters []Cluster
	Zippers  []Zipper
	// Striped has the measurements of a job whose messages use all zippers. Its Rates are empty if
	// there was no such job.
	Striped Striped
	// Packet is the number of bytes that an adapter passes at a time, and Burst the number that
	// pass at once after a pause. Both are for simulation; 0 if not known.
	Packet, Burst int
	Machine       int // number of cores, if all hosts are one machine; 0 if each has its own
	// Links has the processor times of links inside the machine, if all hosts are one machine.
	Links Links
}

// These are thresholds of the decisions below.
const (
	near       = 0.10 // relative difference below which rates count as equal
	asymmetric = 0.75 // part of the rate below which reverse traffic counts as slowing a message
)

// Write fits the samples and writes a platform file with comments. It returns the platform that is
// read back from the file. Errors name a missing measurement.
func Write(w io.Writer, s Samples) (*platform.Platform, error) {
	var b strings.Builder
	if err := s.write(&b); err != nil {
		return nil, err
	}
	p, err := platform.Read(strings.NewReader(b.String()))
	if err != nil {
		return nil, fmt.Errorf("the fitted platform is not valid: %w", err)
	}
	_, err = io.WriteString(w, b.String())
	return p, err
}

// rate returns the mean of samples, which are rates in bytes/s, and its 95 % interval as text for a
// comment in the platform file. It returns an error, which contains what, if there are no samples
// or the mean is not above 0.
func rate(what string, samples []float64) (fit.Value, string, error) {
	m, err := fit.Mean(samples)
	if err == nil && m.Value <= 0 {
		err = fmt.Errorf("%v is not above 0", m.Value)
	}
	if err != nil {
		return m, "", fmt.Errorf("%s: %w", what, err)
	}
	how := "one sample"
	if h, err := fit.HalfWidth(samples, 0.95); err == nil {
		how = fmt.Sprintf("±%.1f %% (95 %%, %d samples)", 100*h/m.Value, len(samples))
	}
	return m, how, nil
}

func (s *Samples) write(w *strings.Builder) error {
	if len(s.Clusters) == 0 {
		return errors.New("no clusters were measured")
	}
	name := s.Name
	if name == "" {
		name = "calibrated"
	}
	fmt.Fprintf(w, "# Written by zipper calibrate. Edit freely; docs/howto/predicting.md describes the fields.\nname: %q\n",
		name)
	var ethernet []string
	fmt.Fprintln(w, "clusters:")
	for i := range s.Clusters {
		skewed, err := s.Clusters[i].write(w)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", s.Clusters[i].Name, err)
		}
		if skewed {
			ethernet = append(ethernet, s.Clusters[i].Name)
		}
	}
	if len(s.Zippers) > 0 {
		fmt.Fprintln(w, "zippers:")
	}
	for i := range s.Zippers {
		if err := s.Zippers[i].write(w); err != nil {
			return fmt.Errorf("zipper %s: %w", s.Zippers[i].Name, err)
		}
	}
	if err := s.rails(w, w.String()); err != nil {
		return err
	}
	if s.Packet > 0 || s.Burst > 0 {
		fmt.Fprintf(w, "network: {packet: %d, burst: %d} # bytes\n", s.Packet, s.Burst)
	}
	if s.Machine > 0 {
		fmt.Fprintf(w, "machine: {cores: %d, packet: %.2fus, byte: %.4fns} # that all hosts and zippers share\n",
			s.Machine, 1e6*s.Links.Packet, 1e9*s.Links.Byte)
	}
	switch {
	case len(ethernet) > 0:
		fmt.Fprintf(w, "sharing: zhu # reverse traffic slows the adapters of %s\n", strings.Join(ethernet, ", "))
	case len(s.Zippers) > 0:
		fmt.Fprintln(w, "sharing: buffered # no adapter is slowed by reverse traffic; the forwarders queue")
	default:
		fmt.Fprintln(w, "sharing: max-min # no adapter is slowed by reverse traffic")
	}
	return nil
}

func (c *Cluster) write(w io.Writer) (skewed bool, err error) {
	lone, how, err := rate("lone message", c.Lone)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(w, "  - name: %q\n    hosts: [", c.Name)
	for i, h := range c.Hosts {
		if i > 0 {
			fmt.Fprint(w, ", ")
		}
		fmt.Fprintf(w, "%q", h)
	}
	fmt.Fprintf(w, "]\n    cores: %d\n", max(1, c.Cores))
	note := "reverse traffic was not measured"
	if len(c.OutAlone) > 0 && len(c.OutBusy) > 0 {
		alone, _, err := rate("message out of an idle host", c.OutAlone)
		if err != nil {
			return false, err
		}
		busy, _, err := rate("message out of a busy host", c.OutBusy)
		if err != nil {
			return false, err
		}
		skewed = busy.Value < asymmetric*alone.Value
		note = fmt.Sprintf("with many messages coming in, %.0f %% of the rate goes out", 100*busy.Value/alone.Value)
	}
	fmt.Fprintf(w, "    nic: {in: %.0f, out: %.0f, asymmetric: %v} # bytes/s %s; %s\n", lone.Value, lone.Value, skewed,
		how, note)
	if len(c.Latency) > 0 {
		l, err := fit.Mean(c.Latency)
		if err != nil || l.Value < 0 {
			return false, fmt.Errorf("latency %v: %v", l, err)
		}
		fmt.Fprintf(w, "    latency: %.9f # seconds ± %.2g (standard error)\n", l.Value, l.Err)
	}
	processor(w, c.Costs)
	return skewed, c.ruleB(w, lone.Value)
}

func (z *Zipper) write(w io.Writer) error {
	fmt.Fprintf(w, "  - name: %q\n    cores: %d\n    ports:\n", z.Name, z.Cores)
	in, out := make(map[string]float64), make(map[string]float64)
	var clusters []string
	for c := range z.In {
		clusters = append(clusters, c)
	}
	slices.Sort(clusters)
	for _, c := range clusters {
		i, how, err := rate("into the zipper from "+c, z.In[c])
		if err != nil {
			return err
		}
		o, howOut, err := rate("out of the zipper to "+c, z.Out[c])
		if err != nil {
			return err
		}
		in[c], out[c] = i.Value, o.Value
		fmt.Fprintf(w, "      %q: {in: %.0f, out: %.0f} # in %s, out %s\n", c, i.Value, o.Value, how, howOut)
	}
	if err := z.forwarder(w, clusters, in, out); err != nil {
		return err
	}
	if err := z.memory(w); err != nil {
		return err
	}
	processor(w, z.Costs)
	if len(z.Through) > 0 {
		l, err := fit.Mean(z.Through)
		if err != nil || l.Value < 0 {
			return fmt.Errorf("latency %v: %v", l, err)
		}
		fmt.Fprintf(w, "    through: %.9f # seconds ± %.2g (standard error), of a small message from cluster to cluster\n",
			l.Value, l.Err)
	}
	if z.Segment > 0 {
		fmt.Fprintf(w, "    relay: segmented # pieces are sent on when they are whole\n    segment: %d\n", z.Segment)
	}
	if len(z.Handshake) > 0 {
		h, err := fit.Mean(z.Handshake)
		if err != nil || h.Value < 0 {
			return fmt.Errorf("handshake %v: %v", h, err)
		}
		fmt.Fprintf(w, "    handshake: %.9f # seconds ± %.2g (standard error), of messages of more than\n    eager: %d\n",
			h.Value, h.Err, z.Eager)
	}
	if z.Socket > 0 {
		fmt.Fprintf(w, "    socket: %d # unsent in a socket and, where known, on the way\n", z.Socket)
	}
	return nil
}

// processor writes the means of the measured processor times in list to w, as fields of the
// platform file. It writes nothing if the list is empty.
func processor(w io.Writer, list []Costs) {
	if len(list) == 0 {
		return
	}
	var m Costs
	for _, c := range list {
		m.Switch += c.Switch / float64(len(list))
		m.Call += c.Call / float64(len(list))
		m.Byte += c.Byte / float64(len(list))
	}
	fmt.Fprintf(w, "    processor: {switch: %.2fus, call: %.2fus, byte: %.4fns} # by TCP inside a host\n", 1e6*m.Switch,
		1e6*m.Call, 1e9*m.Byte)
}

// memory writes the bandwidth of a zipper's memory, as its measured rate of copies, to the platform
// file w. A relayed byte is copied out of the kernel and back into it.
func (z *Zipper) memory(w io.Writer) error {
	if len(z.Copies) == 0 {
		return nil
	}
	m, how, err := rate("copies in memory", z.Copies)
	if err != nil {
		return err
	}
	most, at := 0.0, 0.0
	for d, both := range z.Both {
		a, b, _ := strings.Cut(d, ">")
		x, err := fit.Mean(append(slices.Clone(both), z.Both[b+">"+a]...))
		if err != nil {
			return err
		}
		most = max(most, 2*x.Value)
	}
	at = 2 * most / m.Value
	note := "the rates measured stayed far below it"
	if at > 0.5 {
		note = "it may be the bottleneck, which the measurement cannot distinguish from the forwarder"
	}
	fmt.Fprintf(w, "    memory: {bandwidth: %.0f, crossings: 2} # bytes/s %s that a thread copies; both directions at once took %.2g %% of it: %s\n",
		m.Value, how, 100*at, note)
	return nil
}

// forwarder decides between a blocking thread (one message passes at 1/(1/in+1/out), and many
// messages are no faster), a copy rate below that of the ports, and neither, and writes the
// decision to the platform file w. in and out have the rates of the ports in bytes/s, by cluster. A
// blocking thread must fit the rates of all measured directions; the copy rate is that of the
// slowest direction. A copy rate that happens to equal the rate of a blocking thread is taken for
// one, because rates alone cannot separate them.
func (z *Zipper) forwarder(w io.Writer, clusters []string, in, out map[string]float64) error {
	copyRate, blocking, half, measured := 0.0, true, true, false
	for _, a := range clusters {
		for _, b := range clusters {
			d := a + ">" + b
			if len(z.Single[d]) == 0 || a == b {
				continue
			}
			measured = true
			single, _, err := rate("one message "+d, z.Single[d])
			if err != nil {
				return err
			}
			most := single
			if len(z.Many[d]) > 0 {
				if most, _, err = rate("many messages "+d, z.Many[d]); err != nil {
					return err
				}
			}
			serial := 1 / (1/in[a] + 1/out[b])
			blocking = blocking && math.Abs(single.Value-serial) < near*serial && most.Value < (1+near)*serial
			// The last pieces cross the second link when all others have crossed both.
			passed := most.Value
			if z.Segment > 0 && z.Bytes > 0 {
				passed *= 1 + float64(z.Segment)/float64(z.Bytes)
			}
			if ports := min(in[a], out[b]); passed < (1-near)*ports && (copyRate == 0 || passed < copyRate) {
				copyRate = passed
			}
			if len(z.Both[d]) == 0 {
				half = false
				continue
			}
			both, _, err := rate("both directions, "+d, z.Both[d])
			if err != nil {
				return err
			}
			half = half && both.Value < (0.5+near)*single.Value
		}
	}
	switch {
	case !measured:
		fmt.Fprintln(w, "    # forwarder: not measured, assumed to take no time")
	case blocking:
		fmt.Fprintf(w, "    forwarder: {threads: 1, one_way: %v} # as fast as a thread that receives, then sends\n",
			!half)
	case copyRate > 0:
		fmt.Fprintf(w, "    forwarder: {copy: %.0f, half: %v} # less than its ports carry\n", copyRate, half)
	default:
		fmt.Fprintln(w, "    # forwarder: as fast as its ports")
	}
	return nil
}

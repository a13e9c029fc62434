// Package doctor finds out which networks reach which, and whether a host has what a job needs.
//
// A probe runs on one host of every cluster (zipper doctor starts it like a cluster with launcher
// ssh). The probe describes its host and listens on a port, where it sends a random word to every
// connection. Then the doctor asks it to connect to the addresses of the others. Only the right
// word proves that an address belongs to the host that it was taken from, because two separate
// networks may well use the same addresses.
package doctor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/agent"
	"github.com/leidenzipper/zipper/internal/transport/addr"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/launch/native"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Hello is a probe's description of its host.
type Hello struct {
	// Version is the version of the zipper protocol.
	Version int `json:"version"`
	// Host is the host's name.
	Host string `json:"host"`
	// Stack identifies the machine and its network namespace.
	Stack string `json:"stack"`
	// Addresses are the host's addresses without loopback and link-local ones.
	Addresses []Address `json:"addresses"`
	// Fabrics are the ports of its adapters.
	Fabrics []Fabric `json:"fabrics,omitempty"`
	// Obstacles to links over the adapters: each says which one, and what to do.
	Obstacles []string `json:"obstacles,omitempty"`
	// Port is the port where the probe sends Word.
	Port int `json:"port"`
	// Word is a random word.
	Word string `json:"word"`
	// Arch is the architecture of its processors: x86_64 or aarch64.
	Arch string `json:"arch"`
	// Cores is the number of processors.
	Cores int `json:"cores"`
	// Buffers are the kernel's limits of connections.
	Buffers Buffers `json:"buffers"`
	// MPI has the host's MPI libraries.
	MPI []Library `json:"mpi"`
}

// Address is an address of a host.
type Address struct {
	// Interface is the name of the interface.
	Interface string `json:"interface"`
	// CIDR is the address with the length of its network, as in 10.0.0.5/24.
	CIDR string `json:"cidr"`
	// Speed is the interface's rate in Mbit/s; 0: unknown.
	Speed int `json:"speed"`
}

// IP returns the address without its network's length.
func (a Address) IP() string { ip, _, _ := strings.Cut(a.CIDR, "/"); return ip }

// Fabric is a port of a host channel adapter.
type Fabric struct {
	// Device is the adapter and the port, as in mlx5_0/1.
	Device string `json:"device"`
	// Prefix is the subnet prefix of the port's first GID.
	Prefix string `json:"prefix"`
	// Link is InfiniBand or Ethernet.
	Link string `json:"link"`
	// State is the port's state in the kernel's words.
	State string `json:"state"`
}

// Library is an MPI library on a host.
type Library struct {
	MPI     spec.MPI `json:"mpi"`
	Mpirun  string   `json:"mpirun,omitempty"`
	Version string   `json:"version,omitempty"`
	Shim    string   `json:"shim,omitempty"`
	Missing string   `json:"missing,omitempty"` // says which part is missing, and what to do
}

// Target is an address to connect to, or a job to join.
type Target struct {
	// Address is host:port.
	Address string `json:"address,omitempty"`
	// Word is the word of the probe at Address; an empty word means that a forwarder is expected
	// there.
	Word string `json:"word,omitempty"`
	// Join is a job's environment; the probe joins that job as its cluster's only rank.
	Join []string `json:"join,omitempty"`
}

// Answer is the result of an attempt to connect or to join.
type Answer struct {
	Kind   Kind          `json:"kind"`
	Took   time.Duration `json:"took_ns"`
	Detail string        `json:"detail,omitempty"`
}

// Kind is the kind of an answer.
type Kind string

// Kinds of answers.
const (
	Reached Kind = "reached" // the expected probe or forwarder answered
	Other   Kind = "other"   // another program answered
	Refused Kind = "refused" // the address answers, the port does not
	Silent  Kind = "silent"  // there is no answer, or no route
)

// Serve runs a probe. It writes Hello to w, then for every line of targets (a JSON array) on r a
// line of answers, until r ends.
func Serve(ctx context.Context, r io.Reader, w io.Writer) error {
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		return err
	}
	defer ln.Close()
	h := Survey(ctx)
	h.Port = ln.Addr().(*net.TCPAddr).Port
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(dialTimeout))
			_, _ = io.WriteString(c, h.Word) // the other end notices if the word does not arrive
			c.Close()
		}
	}()
	return agent.Serve(r, w, h, func(targets []Target) []Answer {
		answers := make([]Answer, len(targets))
		var wg sync.WaitGroup
		for i, t := range targets {
			wg.Go(func() { answers[i] = Dial(ctx, t) })
		}
		wg.Wait()
		return answers
	})
}

// Dial connects to a target and judges the answer, or joins the target's job.
func Dial(ctx context.Context, t Target) Answer {
	begin := time.Now()
	if t.Join != nil {
		return join(ctx, t.Join, begin)
	}
	if kind, _ := addr.Split(t.Address); kind == addr.KindVerbs {
		return dialVerbs(ctx, t.Address, begin)
	}
	d := net.Dialer{Timeout: dialTimeout}
	c, err := d.DialContext(ctx, "tcp", t.Address)
	if err != nil {
		kind := Silent
		if strings.Contains(err.Error(), "refused") {
			kind = Refused
		}
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return Answer{Kind: kind, Took: time.Since(begin), Detail: err.Error()}
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(dialTimeout))
	if t.Word == "" {
		return challenged(c, begin)
	}
	b, _ := io.ReadAll(io.LimitReader(c, int64(len(t.Word))+1))
	if string(b) != t.Word {
		return Answer{Kind: Other, Took: time.Since(begin), Detail: "another host has this address"}
	}
	return Answer{Kind: Reached, Took: time.Since(begin)}
}

// challenged reads a forwarder's first frame.
func challenged(r io.Reader, begin time.Time) Answer {
	other := func(why string) Answer {
		return Answer{Kind: Other, Took: time.Since(begin), Detail: "the program that listens there is not a forwarder: " + why}
	}
	b := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(r, b); err != nil {
		return other(err.Error())
	}
	h, err := wire.ParseHeader(b)
	if err != nil || h.Type != wire.TypeChallenge || h.Length > wire.ChallengeLen {
		return other("it does not speak the protocol")
	}
	body := make([]byte, h.Length)
	if _, err := io.ReadFull(r, body); err != nil {
		return other(err.Error())
	}
	c, err := wire.ParseChallenge(body)
	if err != nil {
		return other(err.Error())
	}
	if _, ok := c.Common(); !ok {
		return Answer{Kind: Other, Took: time.Since(begin),
			Detail: fmt.Sprintf("it speaks %s of the protocol, we speak %s: install releases that fit each other (COMPATIBILITY.md)",
				wire.Versions(c.Oldest, c.Version), wire.Versions(wire.Oldest, wire.Version))}
	}
	return Answer{Kind: Reached, Took: time.Since(begin)}
}

// Survey describes this host.
func Survey(ctx context.Context) Hello {
	h := Hello{Version: int(wire.Version), Word: word(), Arch: wire.Architecture(), Cores: runtime.NumCPU(),
		Fabrics: fabrics("/sys/class/infiniband"), Buffers: buffers("/proc/sys/net/ipv4")}
	if len(h.Fabrics) > 0 {
		h.Obstacles = obstacles("/dev/infiniband", lockable())
	}
	h.Host, _ = os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/net")
	h.Stack = strings.TrimSpace(string(boot)) + " " + space
	ifs, _ := net.Interfaces()
	for _, i := range ifs {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && i.Flags&net.FlagUp != 0 && n.IP.IsGlobalUnicast() {
				h.Addresses = append(h.Addresses, Address{i.Name, n.String(), speed("/sys/class/net", i.Name)})
			}
		}
	}
	for _, m := range []spec.MPI{spec.OpenMPI, spec.MPICH} {
		h.MPI = append(h.MPI, library(ctx, m))
	}
	return h
}

// word returns a random word.
func word() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func library(ctx context.Context, m spec.MPI) Library {
	l := Library{MPI: m}
	var err error
	if l.Mpirun, l.Version, err = native.FindMpirun(ctx, m); err != nil {
		l.Missing = err.Error()
		return l
	}
	if l.Shim, err = native.ShimPath(m); err != nil {
		l.Missing = err.Error()
	}
	return l
}

// lockable returns the number of bytes of memory that may be locked.
func lockable() uint64 {
	var r unix.Rlimit
	if os.Geteuid() == 0 || unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) != nil { // the kernel does not limit root's memory
		return unix.RLIM_INFINITY
	}
	return r.Cur
}

// obstacles returns the obstacles for this user to using adapters through the files in dev.
func obstacles(dev string, locked uint64) (out []string) {
	files, _ := filepath.Glob(filepath.Join(dev, "uverbs*"))
	if len(files) == 0 {
		out = append(out, "there is no "+dev+"/uverbs0: load the kernel module ib_uverbs")
	}
	for _, f := range files {
		if err := unix.Access(f, unix.R_OK|unix.W_OK); err != nil {
			out = append(out, f+": "+err.Error()+": give users read and write access (rdma-core's udev rules do)")
		}
	}
	if locked < enoughLocked {
		out = append(out, fmt.Sprintf("locked memory is limited to %d KiB (ulimit -l): raise it (memlock in /etc/security/limits.conf, LimitMEMLOCK=infinity in a service file), see docs/howto/infiniband.md",
			locked>>10))
	}
	return out
}

// fabrics reads the adapters' ports from sysfs.
func fabrics(root string) []Fabric {
	read := func(p ...string) string {
		b, _ := os.ReadFile(filepath.Join(p...))
		return strings.TrimSpace(string(b))
	}
	var out []Fabric
	ports, _ := filepath.Glob(filepath.Join(root, "*", "ports", "*"))
	for _, p := range ports {
		gid := read(p, "gids", "0") // fe80:0000:0000:0000:0002:c903:00a0:1b2c
		if len(gid) < 19 {
			continue
		}
		_, state, _ := strings.Cut(read(p, "state"), ": ")
		device := filepath.Base(filepath.Dir(filepath.Dir(p))) + "/" + filepath.Base(p)
		out = append(out, Fabric{Device: device, Prefix: gid[:19], Link: read(p, "link_layer"), State: state})
	}
	return out
}

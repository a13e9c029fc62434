package nat

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/optional"
)

// role is the environment variable that is set in the processes that this test starts of itself.
const role = "ZIPPER_NAT_TEST"

// TestTable runs TestInNamespace in a network namespace of its own, in which that test may change
// everything.
func TestTable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a network namespace")
	}
	optional.Processor(t, "clone with CLONE_NEWNET")
	cmd := exec.Command(os.Args[0], "-test.run", "^TestInNamespace$", "-test.v")
	cmd.Env = append(os.Environ(), role+"=test")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInNamespace") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestInNamespace(t *testing.T) {
	switch os.Getenv(role) {
	case "":
		t.Skip("is run by TestTable")
	case "die": // with a table
		table, err := Open()
		if err != nil {
			t.Fatal(err)
		}
		own := netip.MustParseAddr("127.0.0.1")
		if _, err := table.OpenWays([]Way{{own, own, netip.AddrPortFrom(own, 5000)}}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("ready")
		select {}
	case "sources": // tells each client its address
		ln, err := net.Listen("tcp", ":7000")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("ready")
		for {
			c, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(c, c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap().String())
			c.Close()
		}
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(versions[0].setting, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	const off4, off6 = "IP forwarding is off: sysctl -w net.ipv4.ip_forward=1",
		"IPv6 forwarding is off: sysctl -w net.ipv6.conf.all.forwarding=1"
	four, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	for want, at := range map[string][]netip.Addr{off4: nil, off6: {six}, off4 + "; " + off6: {four, six, six}} {
		if _, err := Open(at...); err == nil || err.Error() != want+" (docs/howto/direct-links.md has all conditions)" {
			t.Errorf("without IP forwarding, at %v: %v", at, err)
		}
	}
	if err := os.WriteFile(versions[0].setting, []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	table, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	tables(t) // The kernel tracks no connections before there is a way.

	own, other := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	one, two := echo(t, other, "one"), echo(t, other, "two")
	first, err := table.OpenWays([]Way{{own, own, one}, {own, own, two}, {own, own, one}})
	if err != nil {
		t.Fatal(err)
	}
	tables(t, os.Getpid())
	for i, want := range []string{"one", "two", "one"} {
		if got := ask(first[i]); got != want {
			t.Errorf("at %v there is %q, want %q", first[i], got, want)
		}
		if got := askFrom(other, first[i]); !strings.Contains(got, "refused") {
			t.Errorf("another host finds %q at %v", got, first[i])
		}
		if ln, err := net.Listen("tcp", first[i].String()); err == nil {
			ln.Close()
			t.Errorf("%v is still free", first[i])
		}
	}
	// A second way to one of the same places does not depend on the first one, and a connection
	// goes on when its way is closed.
	second, err := table.OpenWays([]Way{{own, own, two}})
	if err != nil {
		t.Fatal(err)
	}
	stays, err := table.OpenWays([]Way{{own, own, mirror(t, other)}})
	if err != nil {
		t.Fatal(err)
	}
	long, err := net.Dial("tcp", stays[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	reflects(t, long)
	if err := table.CloseWays(append(first, stays...)); err != nil {
		t.Error(err)
	}
	reflects(t, long)
	if got := ask(first[0]); !strings.Contains(got, "refused") {
		t.Errorf("at %v, which is closed, there is %q", first[0], got)
	}
	if got := ask(second[0]); got != "two" {
		t.Errorf("at %v there is %q, want two", second[0], got)
	}
	if err := table.CloseWays(append(second, first...)); err != nil { // first is closed already
		t.Error(err)
	}
	if err := os.WriteFile(versions[0].setting, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := table.OpenWays([]Way{{own, own, one}}); err == nil || !strings.Contains(err.Error(),
		"IP forwarding is off") {
		t.Errorf("IP forwarding switched off: %v", err)
	}
	if err := os.WriteFile(versions[0].setting, []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	// As many as there can be, to as many places.
	var ways []Way
	for i := range MaxWays {
		ways = append(ways, Way{own, own, netip.AddrPortFrom(other, uint16(20000+i))})
	}
	ways[MaxWays-1].To = two
	many, err := table.OpenWays(ways)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.OpenWays([]Way{{own, own, one}}); err == nil || !strings.Contains(err.Error(), "1024 ways are open") {
		t.Errorf("more than there can be: %v", err)
	}
	if got := ask(many[MaxWays-1]); got != "two" {
		t.Errorf("at the last of many there is %q, want two", got)
	}
	for range 2 {
		if err := table.CloseWays(many); err != nil {
			t.Error(err)
		}
		if many, err = table.OpenWays(ways); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.CloseWays(many); err != nil {
		t.Error(err)
	}
	// Each way that cannot be opened fails alone.
	some, err := table.OpenWays([]Way{{own, own, one}, {own, netip.MustParseAddr("::1"), one},
		{own, netip.MustParseAddr("192.0.2.1"), one}, {netip.Addr{}, own, one}, {own, own, two}})
	if err == nil || !strings.Contains(err.Error(), "want addresses of one version") ||
		!strings.Contains(err.Error(), "192.0.2.1") {
		t.Errorf("ways of two versions, and at an address that is not this host's: %v", err)
	}
	for i, want := range []string{"one", "", "", "", "two"} {
		if some[i].IsValid() != (want != "") || want != "" && ask(some[i]) != want {
			t.Errorf("way %d is at %v, want %q there", i, some[i], want)
		}
	}
	if err := table.CloseWays(append(some[:1], some[4])); err != nil {
		t.Error(err)
	}
	third, err := table.OpenWays([]Way{{own, own, two}})
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Close(); err != nil {
		t.Error(err)
	}
	tables(t)
	if _, err := table.OpenWays([]Way{{own, own, one}}); err == nil {
		t.Error("a closed table passes connections on")
	}
	if err := table.CloseWays(third); err != nil {
		t.Errorf("a way that has ended with its table: %v", err)
	}
	// A kernel that refuses loses the table, rather than the answers' order. The next way makes
	// another one.
	if table, err = Open(); err != nil {
		t.Fatal(err)
	}
	if third, err = table.OpenWays([]Way{{own, own, two}}); err != nil {
		t.Fatal(err)
	}
	table.ways[third[0]].From = other // the kernel has no such way
	if err := table.CloseWays(third); err == nil {
		t.Error("a way that is not there is closed without an error")
	}
	tables(t)
	if third, err = table.OpenWays([]Way{{own, own, two}}); err != nil || ask(third[0]) != "two" {
		t.Errorf("after the loss of the table: %v, %v", third, err)
	}
	if err := table.Close(); err != nil {
		t.Error(err)
	}
	tables(t)

	t.Run("strangers", keepSources)
	t.Run("IPv6", overIPv6)

	// The table of a process that is killed goes with it.
	cmd := exec.Command(os.Args[0], "-test.run", "^TestInNamespace$")
	cmd.Env = append(os.Environ(), role+"=die")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Errorf("the other process: %q, %v", line, err)
	}
	tables(t, cmd.Process.Pid)
	cmd.Process.Kill()
	cmd.Wait()
	tables(t)
}

// TestMissingPrivilegeIsNamedFirst checks that a process that lacks CAP_NET_ADMIN is told so, in
// one line, whether or not this host forwards packets.
func TestMissingPrivilegeIsNamedFirst(t *testing.T) {
	runtime.LockOSThread() // for ever: the thread ends with this goroutine
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		t.Fatal(err)
	}
	data[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	if err := unix.Capset(&head, &data[0]); err != nil {
		t.Fatal(err)
	}
	own := netip.MustParseAddr("127.0.0.1")
	_, err := Open(own, netip.IPv6Loopback())
	if err == nil || !strings.HasPrefix(err.Error(), "this process lacks CAP_NET_ADMIN") ||
		strings.Count(err.Error(), "lacks") != 1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// TestErrorsAreInOneLine checks that the errors of several ways are in one line, each of them once.
func TestErrorsAreInOneLine(t *testing.T) {
	own := netip.MustParseAddr("127.0.0.1")
	table := &Table{closed: true, ways: map[netip.AddrPort]*way{}}
	bad := Way{From: own, To: netip.AddrPortFrom(own, 5000)}
	other := Way{From: own, At: netip.IPv6Loopback(), To: netip.AddrPortFrom(own, 5000)}
	_, err := table.OpenWays([]Way{bad, other, bad})
	if err == nil || strings.Count(err.Error(), "want addresses") != 2 || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// keepSources checks that a connection through a way has an address of this host as its source, and
// that another connection to the same address and port keeps its own.
func keepSources(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run", "^TestInNamespace$")
	cmd.Env = append(os.Environ(), role+"=sources")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the other process: %q, %v", line, err)
	}
	pid := fmt.Sprint(cmd.Process.Pid)
	for _, c := range [][]string{
		{"ip", "link", "add", "here", "type", "veth", "peer", "name", "there", "netns", pid},
		{"ip", "addr", "add", "10.9.0.1/24", "dev", "here"}, {"ip", "addr", "add", "10.9.0.3/24", "dev", "here"},
		{"ip", "link", "set", "here", "up"},
		{"nsenter", "-t", pid, "-n", "ip", "addr", "add", "10.9.0.2/24", "dev", "there"},
		{"nsenter", "-t", pid, "-n", "ip", "link", "set", "there", "up"},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", c, err, out)
		}
	}
	table, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	own, client := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.3")
	there := netip.MustParseAddrPort("10.9.0.2:7000")
	at, err := table.OpenWays([]Way{{client, own, there}})
	if err != nil {
		t.Fatal(err)
	}
	if got := askFrom(client, at[0]); got != own.String() {
		t.Errorf("through the way the source is %s, want %v", got, own)
	}
	if got := askFrom(client, there); got != client.String() {
		t.Errorf("beside the way the source is %s, want %v", got, client)
	}
}

// overIPv6 checks that ways of IPv6 are forwarded like those of IPv4, and beside them.
func overIPv6(t *testing.T) {
	own, other := netip.MustParseAddr("::1"), netip.MustParseAddr("fd00::2")
	if out, err := exec.Command("ip", "addr", "add", other.String()+"/128", "dev", "lo", "nodad").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	one := echo(t, other, "one")
	table, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	ways := []Way{{own, own, one}}
	if _, err := table.OpenWays(ways); err == nil || !strings.Contains(err.Error(), "IPv6 forwarding is off") {
		t.Errorf("IPv6 is not forwarded: %v", err)
	}
	if err := errors.Join(table.Close(), os.WriteFile(versions[1].setting, []byte("1"), 0)); err != nil {
		t.Fatal(err)
	}
	if table, err = Open(); err != nil {
		t.Fatal(err)
	}
	four := netip.MustParseAddr("127.0.0.1")
	at, err := table.OpenWays(append(ways, Way{four, four, echo(t, netip.MustParseAddr("127.0.0.2"), "two")}))
	if err != nil {
		t.Fatal(err)
	}
	tables(t, os.Getpid(), os.Getpid())
	for i, want := range []string{"one", "two"} {
		if got := ask(at[i]); got != want {
			t.Errorf("at %v there is %q, want %q", at[i], got, want)
		}
	}
	if got := askFrom(other, at[0]); !strings.Contains(got, "refused") {
		t.Errorf("another host finds %q", got)
	}
	if err := table.CloseWays(at); err != nil {
		t.Error(err)
	}
	if got := ask(at[0]); !strings.Contains(got, "refused") {
		t.Errorf("at a closed door there is %q", got)
	}
	if err := table.Close(); err != nil {
		t.Error(err)
	}
	tables(t)
	if err := os.WriteFile(versions[1].setting, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
}

// tables checks whose tables there are.
func tables(t *testing.T, want ...int) {
	t.Helper()
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	// the kernel removes a dead owner's a moment later
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		list, err := conn.ListTables()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		var pids []int
		for _, l := range list {
			names = append(names, l.Name)
			pid := 0
			fmt.Sscanf(l.Name, "zipper-%d-", &pid)
			pids = append(pids, pid)
		}
		if slices.Equal(pids, want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("tables %v, want those of %v", names, want)
		}
	}
}

// echo listens at a free port of host, sends name to each client, and returns the address.
func echo(t *testing.T, host netip.Addr, name string) netip.AddrPort {
	return serve(t, host, func(c net.Conn) {
		io.WriteString(c, name)
		c.Close()
	})
}

// mirror listens at a free port of host, sends each byte back, and returns the address.
func mirror(t *testing.T, host netip.Addr) netip.AddrPort {
	return serve(t, host, func(c net.Conn) { io.Copy(c, c) })
}

// serve listens at a free port of host, calls each for every client, and returns the address.
func serve(t *testing.T, host netip.Addr, each func(c net.Conn)) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", netip.AddrPortFrom(host, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go each(c)
		}
	}()
	return netip.MustParseAddrPort(ln.Addr().String())
}

// reflects checks that a connection leads to a mirror.
func reflects(t *testing.T, c net.Conn) {
	t.Helper()
	var b [1]byte
	c.SetDeadline(time.Now().Add(5 * time.Second))
	_, err := c.Write([]byte("x"))
	if err == nil {
		_, err = io.ReadFull(c, b[:])
	}
	if err != nil || b[0] != 'x' {
		t.Errorf("the connection returns %q, %v", b, err)
	}
}

// ask returns the answer from an address, or the error.
func ask(at netip.AddrPort) string {
	if at.Addr().Is6() {
		return askFrom(netip.IPv6Unspecified(), at)
	}
	return askFrom(netip.IPv4Unspecified(), at)
}

// askFrom returns the answer to a client with the address from, or the error.
func askFrom(from netip.Addr, at netip.AddrPort) string {
	d := net.Dialer{Timeout: 5 * time.Second, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	c, err := d.Dial("tcp", at.String())
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	b, err := io.ReadAll(c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

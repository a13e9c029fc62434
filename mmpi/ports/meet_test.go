package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/forwardertest"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/handshake/handshaketest"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/boot"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

func with(s *Self, secret string) *Self {
	s.Job.Secret, s.Job.Timeout, s.Job.Poll = secret, 30*time.Second, "adaptive"
	s.Local.TagUB, s.Local.Library, s.Local.Host = 32767, "none", "here"
	return s
}

func serve(t *testing.T) string {
	t.Helper()
	_, addr := forwardertest.Serve(t, forwarder.Config{Dial: dial.Open})
	return addr
}

// meetTwice makes both ends of a port meet twice. The second time the dialling end is there first.
func meetTwice(t *testing.T, acc, con *Self) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	port := acc.Open()
	for round, members := range [][2][]int32{{{0}, {0, 1}}, {{0, 1, 2}, {3}}} {
		type made struct {
			plan *Plan
			err  error
		}
		accepted := make(chan made, 1)
		begin := time.AfterFunc(time.Duration(round)*300*time.Millisecond, func() {
			p, err := acc.Accept(ctx, port, members[0])
			accepted <- made{p, err}
		})
		defer begin.Stop()
		p, err := con.Connect(ctx, port, members[1])
		if err != nil {
			t.Fatal(err)
		}
		a := <-accepted
		if a.err != nil {
			t.Fatal(a.err)
		}
		if string(a.plan.Bytes()) != string(p.Bytes()) || !slices.Equal(p.Accept.Members, members[0]) ||
			!slices.Equal(p.Dial.Members, members[1]) || p.Dial.Job != con.Job.ID {
			t.Errorf("%s\n%s", a.plan.Bytes(), p.Bytes())
		}
	}
}

func TestMeet(t *testing.T) {
	x := serve(t)
	meetTwice(t, with(self("one", "a", 0, x), "s"), with(self("two", "b", 2, x), "s"))
}

func TestMeetApart(t *testing.T) {
	x, y := serve(t), serve(t)
	meetTwice(t, with(self("one", "a", 0, x), "s"), with(self("two", "b", 2, y), "s"))
}

func TestMeetHops(t *testing.T) {
	x, y := serve(t), serve(t)
	sides := []*Self{with(self("one", "a", 0), "s"), with(self("two", "b", 2), "s")}
	for _, s := range sides {
		s.Job.WithZippers([]jobenv.Zipper{zipper(t, "a@"+x+"+w"), zipper(t, "b@"+y+"+w@"+y)})
		s.Job.Networks = []string{"w"}
	}
	meetTwice(t, sides[0], sides[1])
}

// TestDiallerLeavesAtTheEnd checks that a process which has told who it is and then dies does not
// take the port with it: the accepting process waits for the next one.
func TestDiallerLeavesAtTheEnd(t *testing.T) {
	x := serve(t)
	acc, con := with(self("one", "a", 0, x), "s"), with(self("two", "b", 2, x), "s")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	port := acc.Open()
	accepted := make(chan error, 1)
	go func() {
		_, err := acc.Accept(ctx, port, []int32{0})
		accepted <- err
	}()
	loc := con.Local
	loc.Rank, loc.Size = 0, 1
	e, _, err := boot.Join(ctx, con.plain(port.ID, port.Level, dialler).job, loc, engine.Alone{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exchange(ctx, e, 1, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	e.Abort(1, "killed")
	_ = e.Finish() // it reports the end
	if _, err := con.Connect(ctx, port, []int32{0}); err != nil {
		t.Errorf("the next process: %v", err)
	}
	if err := <-accepted; err != nil {
		t.Errorf("the accepting process: %v", err)
	}
}

// TestMeetSecret checks that another secret, and a forged fingerprint, are refused.
func TestMeetSecret(t *testing.T) {
	x := serve(t)
	acc, con := with(self("one", "a", 0, x), "s"), with(self("two", "a", 0, x), "other")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	port := acc.Open()
	go acc.Accept(ctx, port, []int32{0})
	if _, err := con.Connect(ctx, port, []int32{0}); err == nil || !strings.Contains(err.Error(), "another secret") {
		t.Errorf("%v", err)
	}
	port.Print = con.print(port.ID)
	con.Job.Timeout = time.Second
	if _, err := con.Connect(ctx, port, []int32{0}); err == nil || !strings.Contains(err.Error(), "another secret") {
		t.Errorf("%v", err)
	}
}

// TestNames checks that a published name is found until it is withdrawn.
func TestNames(t *testing.T) {
	x := serve(t)
	one, two := with(self("one", "a", 0, x), "s"), with(self("two", "a", 0, x), "s")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var names Names
	if err := names.Publish(ctx, one, "ocean", "here"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if port, err := two.Lookup(ctx, "ocean"); err != nil || port != "here" {
			t.Errorf("%q, %v", port, err)
		}
	}
	var others Names
	if err := others.Publish(ctx, two, "ocean", "there"); !errors.Is(err, ErrTaken) {
		t.Errorf("published twice: %v", err)
	}
	if _, err := with(self("two", "a", 0, x), "other").Lookup(ctx, "ocean"); !errors.Is(err, ErrUnknown) {
		t.Errorf("with another secret: %v", err)
	}
	if err := names.Unpublish("ocean"); err != nil {
		t.Error(err)
	}
	if _, err := two.Lookup(ctx, "ocean"); !errors.Is(err, ErrUnknown) {
		t.Errorf("taken back: %v", err)
	}
	if err := names.Unpublish("ocean"); err == nil {
		t.Error("taken back twice")
	}
}

// TestPublishDuringLookups checks that a name is published while another process looks it up again
// and again, which gets it.
func TestPublishDuringLookups(t *testing.T) {
	x := serve(t)
	one, two := with(self("one", "a", 0, x), "s"), with(self("two", "a", 0, x), "s")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	found := make(chan error, 1)
	go func() {
		for {
			if port, err := two.Lookup(ctx, "ocean"); !errors.Is(err, ErrUnknown) {
				if err == nil && port != "here" {
					err = fmt.Errorf("the port %q", port)
				}
				found <- err
				return
			}
		}
	}()
	time.Sleep(200 * time.Millisecond) // the lookup is at the forwarder by then, in the way of Publish
	var names Names
	if err := names.Publish(ctx, one, "ocean", "here"); err != nil {
		t.Fatal(err)
	}
	if err := <-found; err != nil {
		t.Error(err)
	}
}

// TestLookupWithoutForwarder checks that a forwarder which cannot be reached, or does not answer,
// is not reported as an unknown name.
func TestLookupWithoutForwarder(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for address, want := range map[string]string{
		silent.Addr().String(): "not known whether the name is published",
		gone.Addr().String():   "is it running, is the address right?",
	} {
		s := with(self("one", "a", 0, address), "s")
		if _, err := s.Lookup(context.Background(), "ocean"); err == nil || errors.Is(err, ErrUnknown) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("lookup: %v", err)
		}
		var names Names
		if err := names.Publish(context.Background(), s, "ocean", "here"); err == nil || errors.Is(err, ErrTaken) {
			t.Errorf("publish: %v", err)
		}
	}
}

// TestNameOutlivesLookupThatFails checks that a name is still known after a process whose job has
// another level has looked it up.
func TestNameOutlivesLookupThatFails(t *testing.T) {
	x := serve(t)
	one, two := with(self("one", "a", 0, x), "s"), with(self("two", "a", 0, x), "s")
	other := with(self("three", "a", 0, x), "s")
	other.Job.Level = wire.LevelPlain.String()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var names Names
	if err := names.Publish(ctx, one, "ocean", "here"); err != nil {
		t.Fatal(err)
	}
	if port, err := other.Lookup(ctx, "ocean"); err == nil {
		t.Fatalf("%q found at another level", port)
	}
	if port, err := two.Lookup(ctx, "ocean"); err != nil || port != "here" {
		t.Errorf("%q, %v", port, err)
	}
}

// TestForeignPathIsRefused checks that a process which waits at a port does not take a path that
// begins at none of its job's forwarders.
func TestForeignPathIsRefused(t *testing.T) {
	x, y := serve(t), serve(t)
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	acc, con := with(self("one", "a", 0, x), "s"), with(self("two", "b", 2, x), "s")
	port := acc.Open()
	d := con.plain(port.ID, port.Level, dialler)
	d.job = by(d.job, handshake.Way{Layout: ends, Networks: []string{link}, Zippers: []wire.Zipper{
		{Ports: []wire.Port{{Network: 0, Address: probe.Addr().String()}, {Network: 2, Address: y}}},
		{Ports: []wire.Port{{Network: 1, Address: x}, {Network: 2}}}}})
	met := make(chan error, 1)
	go func() {
		_, err := con.dial(ctx, d, nil)
		met <- err
	}()
	if _, err := acc.Accept(ctx, port, []int32{0}); err == nil || !strings.Contains(err.Error(), "none of the job's forwarders") {
		t.Errorf("error %v", err)
	}
	cancel()
	<-met
	handshaketest.NotDialled(t, probe)
}

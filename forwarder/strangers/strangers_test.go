package strangers

import "testing"

func TestOrigin(t *testing.T) {
	for remote, want := range map[string]string{
		"tcp 10.0.0.1:4000": "10.0.0.1", "tcp [2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64",
		"tcp [::ffff:10.0.0.1]:4": "10.0.0.1", "unix /run/x": "unix /run/x",
	} {
		if got := originOf(remote); got != want {
			t.Errorf("%s: %s", remote, got)
		}
	}
}

// TestAddressWithMostLinksLosesOne checks that the address with most links loses one if all
// together are too many, and that links that have ended leave nothing behind.
func TestAddressWithMostLinksLosesOne(t *testing.T) {
	s := New(Limits{Unjoined: 3, UnjoinedFrom: 3, LinksFrom: 3, Gathering: 2, GatheringFrom: 1})
	var all []*Stranger
	connect := func(remote string) *Stranger {
		g, oldest, err := s.Connect(remote, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
		return oldest
	}
	for _, r := range []string{"tcp 10.0.0.1:1", "tcp 10.0.0.1:2", "tcp 10.0.0.2:1"} {
		if connect(r) != nil {
			t.Error("there was room")
		}
	}
	if connect("tcp 10.0.0.3:1") != all[0] {
		t.Error("not the oldest of 10.0.0.1")
	}
	s.Opened(all[1])
	if s.MayOpen(all[0]) == nil || s.MayOpen(all[2]) != nil {
		t.Error("one job of each address")
	}
	for _, g := range all {
		s.Leave(g)
	}
	s.Over(all[1])
	if len(s.origins) != 0 || s.unjoined != 0 || s.gathering != 0 {
		t.Errorf("left: %+v", s)
	}
}

// TestOldestLinkIsClosedAmongEqualAddresses checks that of addresses that have equally many links
// the one with the oldest link loses it, every time.
func TestOldestLinkIsClosedAmongEqualAddresses(t *testing.T) {
	for range 8 {
		s := New(Limits{Unjoined: 6, UnjoinedFrom: 3, LinksFrom: 3})
		var first *Stranger
		for i, remote := range []string{"c:1", "a:1", "f:1", "b:1", "e:1", "d:1", "g:1"} {
			g, oldest, err := s.Connect("tcp "+remote, nil)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = g
			}
			if i == 6 && oldest != first {
				t.Errorf("link %d goes", oldest.number)
			}
		}
	}
}

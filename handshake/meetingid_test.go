package handshake

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestMeetingsHaveTheJobsKey checks that the ids of jobs beside a job differ from it, and that the
// jobs have its key.
func TestMeetingsHaveTheJobsKey(t *testing.T) {
	m := MeetingID("job", "1")
	c := ConnectionID(m, "2")
	for id, meeting := range map[string]bool{"job": false, RowID("job", 1): false, m: true, RowID(m, 1): true, c: false,
		"job#p": false} {
		if IsMeeting(id) != meeting || JobID(id) != "job" {
			t.Errorf("%q: a meeting %v, of job %q", id, IsMeeting(id), JobID(id))
		}
	}
	if !Key(c, "secret").Equal(Key("job", "secret")) {
		t.Error("the key is not the job's")
	}
}

// TestWayIsReadBack checks that ParseWay reads the text of String, and refuses other texts.
func TestWayIsReadBack(t *testing.T) {
	w := Way{Layout: []wire.Cluster{{Name: "x", Size: 1}, {Name: "y", Size: 1}}, Networks: []string{"w"},
		Zippers: []wire.Zipper{{Ports: []wire.Port{{Network: 0, Address: "h:1"}, {Network: 2}}, HostKey: [32]byte{7}}}}
	if got, err := ParseWay(w.String()); err != nil || got.String() != w.String() {
		t.Errorf("%v, %v", got, err)
	}
	for name, edit := range map[string]func(*Way){
		"no zipper":           func(w *Way) { w.Zippers = nil },
		"three ends":          func(w *Way) { w.Layout = append(w.Layout, wire.Cluster{Name: "z", Size: 1}) },
		"no such network":     func(w *Way) { w.Networks = nil },
		"too many of zippers": func(w *Way) { w.Zippers = make([]wire.Zipper, wire.MaxZippers+1) },
	} {
		bad := w
		edit(&bad)
		if _, err := ParseWay(bad.String()); err == nil {
			t.Errorf("%s: taken for a way", name)
		}
	}
	if _, err := ParseWay("layout differs"); err == nil {
		t.Error("a sentence is taken for a way")
	}
}

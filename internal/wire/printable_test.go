package wire

import "testing"

// TestNamesArePrintable checks that a Join with control characters in its names is refused.
func TestNamesArePrintable(t *testing.T) {
	join := func(change func(*Join)) error {
		j := Join{Version: Version, Job: "j", Cluster: "a", Rails: 1, Layout: []Cluster{{"a", 1}}}
		change(&j)
		_, err := ParseJoin(j.Append(nil))
		return err
	}
	if err := join(func(j *Join) { j.Job, j.Host = "my.job_1-a#2", "hôte" }); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Join){
		"job":     func(j *Join) { j.Job = "j\x1b[2J" },
		"word":    func(j *Join) { j.Job = "a b" },
		"host":    func(j *Join) { j.Host = "h\n" },
		"library": func(j *Join) { j.Library = "\x07" },
		"cluster": func(j *Join) { j.Cluster = "a\u202e"; j.Layout = []Cluster{{"a\u202e", 1}} },
	} {
		if join(change) == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestPrintable(t *testing.T) {
	for s, want := range map[string]string{"": "", "it's \"ü\"": "it's \"ü\"", "a\x1b\n\u202eb": `a\x1b\n\u202eb`} {
		if got := Printable(s); got != want {
			t.Errorf("%q: %q", s, got)
		}
	}
}

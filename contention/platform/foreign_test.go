package platform

import (
	"os"
	"strings"
	"testing"
)

// TestForeignFiles checks that a file of another program is named in the error, with the fields
// that its contents map to.
func TestForeignFiles(t *testing.T) {
	for text, want := range map[string]string{
		"<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n<zone/>\n</platform>\n": "SimGrid",
		"# a site\nSwitchName=s0 Nodes=n[0-3]\nSwitchName=s1 Switches=s0\n":                                                                         "topology.conf",
		"---\n- topology: topo1\n  tree:\n    switches: []\n":                                                                                       "topology.yaml",
		"#\n# Topology file: generated on Mon\n#\nvendid=0x2c9\ndevid=0x5a06\nSwitch\t24 \"S-0002c902\"\n":                                          "ibnetdiscover",
		"0, 1e9, 2e9\n1e9, 0, 3\n": "a matrix",
	} {
		_, err := Read(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "platform.yaml") {
			t.Errorf("%q: %v", text, err)
		}
	}
	text, err := os.ReadFile("../../examples/contention/platform.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := errForeign(text); err != nil {
		t.Error(err)
	}
}

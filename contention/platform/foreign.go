package platform

import (
	"bytes"
	"fmt"
	"regexp"
)

// foreign lists files of other programs that a user may pass by mistake: a description, the pattern
// that detects the file, and how its contents map to a platform file. None of them has the rates of
// clusters and zipper nodes.
var foreign = []struct {
	what string
	tell *regexp.Regexp
	how  string
}{
	{"a SimGrid platform", regexp.MustCompile(`^\s*(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE[^>]*>\s*)?<(?:platform|!--)`),
		"each <cluster> or group of hosts is one of clusters:, its link's bandwidth is nic:, its backbone's is backbone:"},
	{"Slurm's topology.conf", regexp.MustCompile(`(?m)^\s*(?:SwitchName|BlockName)=`),
		"it has the switch of each node, and no rates: the nodes of a cluster are its hosts:, their adapters' rate is nic:"},
	{"Slurm's topology.yaml", regexp.MustCompile(`(?m)^\s*-\s+topology:`),
		"it has the switch of each node, and no rates: the nodes of a cluster are its hosts:, their adapters' rate is nic:"},
	{"the output of ibnetdiscover", regexp.MustCompile(`(?m)^(?:vendid=0x|switchguid=0x|caguid=0x|Switch\s+\d+\s+")`),
		"the names of a cluster's hosts in it are hosts:, and nic: is the rate of a link (4xEDR: 100gbit)"},
	{"a matrix", regexp.MustCompile(`^\s*[-+0-9.eE]+\s*[,;]\s*[-+0-9.eE]+\s*[,;\n]`),
		"a matrix of rates or times has no clusters: measure with zipper calibrate, which writes a platform file"},
}

// errForeign returns an error if text, which should be a platform file, is a file of another
// program in the list foreign. The error names the kind of file and the fields that its contents
// map to.
func errForeign(text []byte) error {
	head := text[:min(len(text), 64<<10)]
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	for _, f := range foreign {
		if f.tell.Match(head) {
			return fmt.Errorf("this is %s; want a platform file such as examples/contention/platform.yaml: %s", f.what,
				f.how)
		}
	}
	return nil
}

package jobenv

import (
	"strings"
	"testing"
)

// TestLossSettings checks which values --on-loss and --quorum take, and that a process gets those
// of its launcher.
func TestLossSettings(t *testing.T) {
	for _, c := range []struct{ onLoss, quorum, protocol, err string }{
		{},
		{onLoss: LossEnds, quorum: QuorumRank0},
		{onLoss: LossContinues},
		{onLoss: LossContinues, quorum: QuorumRank0},
		{onLoss: LossContinues, quorum: QuorumBoth},
		{onLoss: "go on", err: `ZIPPER_ON_LOSS="go on": want end or continue`},
		{onLoss: LossContinues, quorum: "all", err: `ZIPPER_QUORUM="all": want rank0 or both`},
		{quorum: QuorumBoth, err: `ZIPPER_QUORUM="both": that is for jobs that go on`},
		{onLoss: LossContinues, protocol: Classic, err: "the protocol classic has end only"},
	} {
		in := map[string]string{VarJob: "j", VarSecret: goodSecret, VarCluster: "a", VarLayout: "a=1,b=2",
			VarForwarders: "h:1", VarOnLoss: c.onLoss, VarQuorum: c.quorum, VarProtocol: c.protocol}
		j, err := From(func(k string) string { return in[k] })
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || j.OnLoss != c.onLoss || j.Quorum != c.quorum {
			t.Errorf("%+v: %+v, %v", c, j, err)
		}
		out := map[string]string{}
		for _, kv := range j.Environ() {
			k, v, _ := strings.Cut(kv, "=")
			out[k] = v
		}
		if out[VarOnLoss] != c.onLoss || out[VarQuorum] != c.quorum {
			t.Errorf("%+v: the process gets %v", c, out)
		}
	}
}

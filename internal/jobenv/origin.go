package jobenv

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/leidenzipper/zipper/internal/wire"
)

// batch are the variables in which batch systems give their processes the job's id.
var batch = []struct{ name, variable string }{
	{"slurm", "SLURM_JOB_ID"},
	{"pbs", "PBS_JOBID"},
	{"lsf", "LSB_JOBID"},
	{"gridengine", "JOB_ID"},
}

// VarOrigin has for whom the process runs (user=NAME slurm=ID), where the launcher knows that and
// the process does not: behind a remote shell it has no variables of the batch job.
const VarOrigin = "ZIPPER_ORIGIN"

// Origin says for whom a process runs, as words for people and accounts: user=NAME, and
// SCHEDULER=ID for each batch job that it is in.
func Origin(get func(string) string, uid int) string {
	if s := get(VarOrigin); s != "" {
		return clean(s, wire.MaxName)
	}
	user := get("USER")
	if user == "" {
		user = get("LOGNAME")
	}
	if user = word(user); user == "" {
		user = fmt.Sprint(uid)
	}
	s := "user=" + user
	for _, b := range batch {
		if id := word(get(b.variable)); id != "" && !(b.name == "gridengine" && get("SGE_ROOT") == "") {
			s += " " + b.name + "=" + id
		}
	}
	return clean(s, wire.MaxName)
}

// word has no blanks, so that it is one.
func word(s string) string {
	return clean(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s), maxOriginWord)
}

// clean is at most n bytes of valid text.
func clean(s string, n int) string {
	if s = strings.ToValidUTF8(s, ""); len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

package jobenv

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/leidenzipper/zipper/internal/wire"
)

// batch lists the variables in which batch systems give their processes the job's id.
var batch = []struct{ name, variable string }{
	{"slurm", "SLURM_JOB_ID"},
	{"pbs", "PBS_JOBID"},
	{"lsf", "LSB_JOBID"},
	{"gridengine", "JOB_ID"},
}

// VarOrigin has the user and batch job of the process (user=NAME slurm=ID). The launcher sets it
// where the process itself does not know them: behind a remote shell it lacks the variables of the
// batch job.
const VarOrigin = "ZIPPER_ORIGIN"

// Origin returns the user and batch jobs of a process, as words for people and accounting:
// user=NAME, and SCHEDULER=ID for each batch job that it is in.
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

// word returns s without blanks and unprintable characters, of at most maxOriginWord bytes.
func word(s string) string {
	return clean(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s), maxOriginWord)
}

// clean returns at most n bytes of valid text.
func clean(s string, n int) string {
	if s = strings.ToValidUTF8(s, ""); len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

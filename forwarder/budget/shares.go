package budget

// Job returns how many bytes of memory a job with a number of links may use in a process that may
// use whole bytes. fixed is the number that an administrator has set for each job; 0: none.
func Job(whole, fixed int64, links int) int64 {
	if fixed > 0 {
		return fixed
	}
	return min(whole, max(JobLeast, int64(links)*LinkShare))
}

// Joining returns how many bytes of memory all links together that have not joined may use in a
// process that may use whole bytes.
func Joining(whole int64) int64 { return min(JoiningMost, whole/JoiningShare) }

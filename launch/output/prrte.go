package output

// withoutNUL returns an edit for a Merger's source that drops a NUL byte, which PRRTE (Open MPI 5)
// prints after the last newline of its own messages: otherwise the next line on the terminal, which
// may be ours, would begin with it.
func withoutNUL(then Edit) Edit {
	return func(line []byte) []byte {
		if len(line) == 1 && line[0] == 0 {
			return nil
		}
		return then(line)
	}
}

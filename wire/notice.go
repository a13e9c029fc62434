package wire

// Notice tells a joiner that waits for the others of its job what is missing.
//
//	0  string  text  for the user
type Notice struct{ Text string }

// Append adds the body's bytes to b.
func (f *Notice) Append(b []byte) []byte { return appendString(b, f.Text) }

// ParseNotice reads a Notice that fills b.
func ParseNotice(b []byte) (Notice, error) {
	r := reader{b: b}
	f := Notice{r.string()}
	if err := r.end(); err != nil {
		return Notice{}, err
	}
	return f, nil
}

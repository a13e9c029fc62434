package verbs

// permanent marks an error that trying again does not cure.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent is true.
func (permanent) Permanent() bool { return true }

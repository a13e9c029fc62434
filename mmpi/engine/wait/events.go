package wait

// events has the descriptors that end the progress thread's sleeps.
type events struct {
	kick  int // event that ends a sleep
	timer int // timer for held messages
}

func (v *events) open(sys System) (err error) {
	if v.kick, err = sys.Event(); err != nil {
		return err
	}
	v.timer, err = sys.Timer()
	return err
}

func (v *events) close(sys System) {
	sys.Close(v.kick)
	sys.Close(v.timer)
}

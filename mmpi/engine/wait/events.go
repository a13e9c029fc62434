package wait

// events are the descriptors that end sleeps.
type events struct {
	wake  int // event: of application threads
	kick  int // event: of the progress thread
	timer int // timer of the progress thread, for held messages
}

func (v *events) open(sys System) (err error) {
	if v.wake, err = sys.Event(); err != nil {
		return err
	}
	if v.kick, err = sys.Event(); err != nil {
		return err
	}
	v.timer, err = sys.Timer()
	return err
}

func (v *events) close(sys System) {
	sys.Close(v.wake)
	sys.Close(v.kick)
	sys.Close(v.timer)
}

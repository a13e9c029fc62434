package clock

import "time"

// Alarms are the timers of an object, by key. Its caller's lock guards it.
type Alarms[K comparable] struct {
	clock Clock
	// expired is called when a timer may have expired, without the lock. It calls Due with the
	// lock.
	expired func(key K, a *Alarm)
	set     map[K]*Alarm
}

// Alarm is a timer that has been set and has not been stopped.
type Alarm struct {
	timer Timer
	// due is the time at which the timer expires. An expiry before that belongs to an earlier
	// setting.
	due time.Time
}

// NewAlarms returns alarms of which none is set.
func NewAlarms[K comparable](c Clock, expired func(key K, a *Alarm)) *Alarms[K] {
	return &Alarms[K]{clock: c, expired: expired, set: map[K]*Alarm{}}
}

// Set sets the timer of a key so that it expires after a time, and replaces an earlier setting.
func (l *Alarms[K]) Set(key K, after time.Duration) {
	due := l.clock.Now().Add(after)
	if a := l.set[key]; a != nil {
		a.due = due
		a.timer.Reset(after)
		return
	}
	a := &Alarm{due: due}
	l.set[key] = a
	a.timer = l.clock.AfterFunc(after, func() { l.expired(key, a) })
}

// Stop stops the timer of a key, if it is set.
func (l *Alarms[K]) Stop(key K) {
	if a := l.set[key]; a != nil {
		a.timer.Stop()
		delete(l.set, key)
	}
}

// Due reports whether a is still the timer of a key and has expired, and ends it then.
func (l *Alarms[K]) Due(key K, a *Alarm) bool {
	if l.set[key] != a || l.clock.Now().Before(a.due) {
		return false
	}
	delete(l.set, key)
	return true
}

package flow

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	var p Pace
	p.Begin(1000, time.Second)
	if p.Acked(1500, time.Second+measureFor/2); p.Rate() != 0 {
		t.Errorf("%v B/s after too short a time", p.Rate())
	}
	if p.Acked(3000, 3*time.Second); p.Rate() != 1000 {
		t.Errorf("2000 bytes in 2 s: %v B/s", p.Rate())
	}
	p.Begin(3000, 10*time.Second) // the pause does not count
	if p.Acked(8000, 11*time.Second); p.Rate() != 2000 {
		t.Errorf("1000 B/s, then 5000 with a weight of a quarter: %v B/s", p.Rate())
	}
}

//go:build race

package simulation

// underRace reports whether the race detector is on, which makes a simulation ten times slower and
// finds little there, because one thread runs at a time.
const underRace = true

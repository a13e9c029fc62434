//go:build !race

package simulation

// underRace: the race detector makes a simulation ten times slower. It finds little there, because
// one thread runs at a time.
const underRace = false

//go:build race

package shm

// underRace: the race detector's atomic stores are weaker than Go's own (golang/go#58020).
const underRace = true

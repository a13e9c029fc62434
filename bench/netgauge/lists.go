package netgauge

// Patterns returns all patterns.
func Patterns() []Pattern {
	return []Pattern{oneToOne(), oneToN(), nToOne(), pingPing(), overlap(), logGP(), pLogP()}
}

// Modules returns all modules that need no MPI; package mpimod has the MPI ones.
func Modules() []Module {
	return []Module{tcpModule(), udpModule(), ipModule(), ethModule(), shmModule(), verbsModule(), ucModule(),
		udModule()}
}

// Find returns the pattern and the module of these names; the error lists all names.
func Find(pattern, module string) (Pattern, Module, error) {
	return FindIn(Patterns(), append(Modules(), MPIModules()...), pattern, module)
}

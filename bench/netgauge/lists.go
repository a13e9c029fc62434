package netgauge

// Patterns lists all patterns.
func Patterns() []Pattern {
	return []Pattern{oneToOne(), oneToN(), nToOne(), pingPing(), overlap(), logGP(), pLogP()}
}

// Modules lists all modules that need no MPI; package mpimod has the MPI ones.
func Modules() []Module {
	return []Module{tcpModule(), udpModule(), ipModule(), ethModule(), shmModule(), verbsModule(), ucModule(),
		udModule()}
}

// Find looks a pattern and a module up by name; the error lists what there is.
func Find(pattern, module string) (Pattern, Module, error) {
	return FindIn(Patterns(), append(Modules(), MPIModules()...), pattern, module)
}

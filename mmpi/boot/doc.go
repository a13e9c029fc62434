// Package boot gives a process its engine. It reads the job's description and joins at the
// forwarders. It listens for direct links and connects to those of others. Then it starts the
// engine on the links. The engine itself does not depend on jobs, addresses or kinds of network.
//
// Errors are those of package engine (*engine.Error), ready for the program. Join may be called
// once in a process. Different jobs may be joined from different goroutines.
package boot

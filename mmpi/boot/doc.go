// Package boot is how a process gets its engine. It reads what the job says of this process and
// joins at the forwarders. It listens for direct links and connects to those of others. Then it
// starts the engine on the links. The engine itself knows no job, no address and no kind of
// network.
//
// Errors are those of package engine (*engine.Error), ready for the program. A Join is called once
// in a process; different jobs may be joined from different goroutines.
package boot

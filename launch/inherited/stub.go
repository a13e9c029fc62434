//go:build !cgo

package inherited

import "syscall"

// Ignore does nothing.
func Ignore(...syscall.Signal) {}

// Restore does nothing.
func Restore() error { return nil }

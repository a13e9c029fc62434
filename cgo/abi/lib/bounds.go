package main

// #cgo LDFLAGS: -Wl,--wrap=pthread_getattr_np
import "C"

package crc32c

import "golang.org/x/sys/cpu"

// folds reports whether processor and system support the instructions of fold.
var folds = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VPCLMULQDQ &&
	cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSE42

// fold continues raw, a CRC32C without its two inversions, with b. The length of b must be a
// multiple of least and not 0.
//
//go:noescape
func fold(raw uint32, b []byte, by *[3]factors) uint32

// weave does the same as fold, but faster, for lengths that are a multiple of block.
//
//go:noescape
func weave(raw uint32, b []byte, by *[3]factors, after *[3]uint64) uint32

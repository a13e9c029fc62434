package crc32c

import "golang.org/x/sys/cpu"

// folds says whether processor and system have what fold uses.
var folds = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VPCLMULQDQ &&
	cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSE42

// fold goes on with raw, which is a CRC32C without its two inversions, by b, whose length is a
// multiple of least and not 0.
//
//go:noescape
func fold(raw uint32, b []byte, by *[3]factors) uint32

// weave is fold for multiples of block, and faster.
//
//go:noescape
func weave(raw uint32, b []byte, by *[3]factors, after *[3]uint64) uint32

//go:build !amd64

package crc32c

const folds = false

func fold(uint32, []byte, *[3]factors) uint32 { panic("crc32c: no fold for this processor") }

func weave(uint32, []byte, *[3]factors, *[3]uint64) uint32 {
	panic("crc32c: no weave for this processor")
}

//go:build !rdma || !cgo

package verbs

// Built reports whether the bindings are in this program.
const Built = false

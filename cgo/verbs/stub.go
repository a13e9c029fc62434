//go:build !rdma || !cgo

package verbs

// Built tells whether the bindings are in this program.
const Built = false

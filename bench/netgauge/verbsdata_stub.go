//go:build !rdma || !cgo

package netgauge

import (
	"context"

	transport "github.com/leidenzipper/zipper/transport/verbs"
)

func openUC(context.Context, Place) (Endpoint, error) { return nil, transport.ErrNotBuilt }
func openUD(context.Context, Place) (Endpoint, error) { return nil, transport.ErrNotBuilt }

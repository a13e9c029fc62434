//go:build !rdma || !cgo

package netgauge

import (
	"context"

	transport "github.com/leidenzipper/zipper/internal/transport/verbs"
)

func openUC(context.Context, Place) (Endpoint, error) { return nil, transport.ErrNotBuilt }
func openUD(context.Context, Place) (Endpoint, error) { return nil, transport.ErrNotBuilt }

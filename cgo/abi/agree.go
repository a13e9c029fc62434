package abi

// #include "abi.h"
import "C"

import (
	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/internal/rma"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// Constants that abi.h and Go both have: if they differ this does not compile.
var (
	_ = [1]int{}[C.Z_FEW_RANKS-collectives.FewRanks]

	_ = [1]int{}[C.Z_P2P-wire.KindP2P]
	_ = [1]int{}[C.Z_COLLECTIVE-wire.KindCollective]
	_ = [1]int{}[C.Z_INTERNAL-wire.KindInternal]

	_ = [1]int{}[C.Z_ERR_RMA_RANGE-engine.ErrRMARange]
	_ = [1]int{}[C.Z_ERR_PROC_FAILED-engine.ErrProcFailed]
	_ = [1]int{}[C.Z_ERR_PROC_FAILED_PENDING-engine.ErrProcFailedPending]
	_ = [1]int{}[C.Z_ERR_REVOKED-engine.ErrRevoked]

	_ = [1]int{}[C.Z_IDLE-engine.Idle]
	_ = [1]int{}[C.Z_BUSY-engine.Busy]
	_ = [1]int{}[C.Z_STAGING-engine.Staging]

	_ = [1]int{}[C.Z_BARRIER-collectives.OpBarrier]
	_ = [1]int{}[C.Z_BCAST-collectives.OpBcast]
	_ = [1]int{}[C.Z_GATHERV-collectives.OpGatherv]
	_ = [1]int{}[C.Z_SCATTERV-collectives.OpScatterv]
	_ = [1]int{}[C.Z_ALLGATHERV-collectives.OpAllgatherv]
	_ = [1]int{}[C.Z_ALLTOALLV-collectives.OpAlltoallv]
	_ = [1]int{}[C.Z_REDUCE-collectives.OpReduce]
	_ = [1]int{}[C.Z_ALLREDUCE-collectives.OpAllreduce]
	_ = [1]int{}[C.Z_REDUCE_SCATTER-collectives.OpReduceScatter]
	_ = [1]int{}[C.Z_SCAN-collectives.OpScan]
	_ = [1]int{}[C.Z_EXSCAN-collectives.OpExscan]

	_ = [1]int{}[C.Z_PUT-rma.Put]
	_ = [1]int{}[C.Z_GET-rma.Get]
	_ = [1]int{}[C.Z_ACCUMULATE-rma.Accumulate]
	_ = [1]int{}[C.Z_FETCH-rma.Fetch]
	_ = [1]int{}[C.Z_SWAP-rma.Swap]
	_ = [1]int{}[C.Z_REPLACE-rma.Replace]
	_ = [1]int{}[C.Z_NO_OP-rma.NoOp]
	_ = [1]int{}[C.Z_LOCK_EXCLUSIVE-rma.Exclusive]
	_ = [1]int{}[C.Z_LOCK_UNCHECKED-rma.Unchecked]
	_ = [1]int{}[C.Z_LOCK_AWAITED-rma.Awaited]
)

package engine_test

import (
	"context"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/mmpi/boot"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

func init() {
	engine.BootForTest = func(job jobenv.Job, rank, size int, native engine.Native) (*engine.Engine, error) {
		loc := boot.Local{Rank: rank, Size: size, TagUB: 1 << 20, Library: "fake", Host: "here"}
		e, _, err := boot.Join(context.Background(), job, loc, native)
		return e, err
	}
}

module github.com/leidenzipper/zipper

go 1.26.0

require (
	go.uber.org/zap v1.28.0
	golang.org/x/sys v0.49.0
	gonum.org/v1/gonum v0.17.0
)

require go.uber.org/multierr v1.10.0 // indirect

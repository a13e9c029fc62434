package benchcmd

import (
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
)

// show writes a result in the form of --format; v is its JSON form.
func show(c *cli.Context, r interface {
	Table(io.Writer) error
	CSV(io.Writer) error
}, v any) error {
	if c.String("format") == "csv" {
		return r.CSV(os.Stdout)
	}
	return emit(c, r.Table, v)
}

func emit(c *cli.Context, table func(io.Writer) error, v any) error {
	if c.String("format") == "json" {
		return clikit.WriteJSON(os.Stdout, v)
	}
	return table(os.Stdout)
}

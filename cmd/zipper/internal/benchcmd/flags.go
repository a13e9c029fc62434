package benchcmd

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
)

var rateForm = regexp.MustCompile(`(?i)^([0-9]+(?:\.[0-9]+)?)(?:[kmgt]i?)?bit$`)

// rateFlag returns a flag for tc's limit of links in the lab. An invalid limit is reported before
// the lab is up. An empty value and off mean no limit.
func rateFlag(name, value, about string) cli.Flag {
	return &cli.StringFlag{Name: name, Value: value, Usage: about, Action: func(_ *cli.Context, s string) error {
		if s == "" || s == "off" {
			return nil
		}
		if m := rateForm.FindStringSubmatch(s); m == nil || strings.Trim(m[1], "0.") == "" {
			return clikit.Usage(fmt.Errorf("--%s %s: want a number with the unit bit, kbit, mbit or gbit, such as 100mbit",
				name, s))
		}
		return nil
	}}
}

// numbers reads the LIST of a flag.
func numbers(c *cli.Context, flag string, least int) (list []int, err error) {
	for _, s := range strings.Split(c.String(flag), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < least {
			return nil, fmt.Errorf("--%s %s: want numbers from %d on, separated by commas", flag, c.String(flag), least)
		}
		list = append(list, n)
	}
	return list, nil
}

// words returns a benchmark command's arguments. The error shows the form and reminds of the order.
func words(c *cli.Context, n int, form string) ([]string, error) {
	for _, a := range c.Args().Slice() {
		if strings.HasPrefix(a, "-") {
			return nil, clikit.Usage(fmt.Errorf("%s: flags come before the arguments: zipper bench %s [flags] %s", a,
				c.Command.Name, form))
		}
	}
	if c.NArg() != n {
		return nil, clikit.Usage(fmt.Errorf("want zipper bench %s [flags] %s", c.Command.Name, form))
	}
	return c.Args().Slice(), nil
}

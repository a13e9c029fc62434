package jobcmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/internal/jobenv"
)

// Secret returns the command zipper secret.
func Secret() *cli.Command {
	return &cli.Command{
		Name:      "secret",
		Usage:     "make a job's or a forwarder's secret",
		ArgsUsage: "FILE",
		Description: `zipper secret ~/.zipper-secret                          a random one; copy the file to the other clusters
zipper secret --passphrase --for lab ~/.zipper-secret   from a passphrase: the same on every cluster

The file is for --secret-file, and can be read by you alone (mode 600). A file that exists is left as it is.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "passphrase",
				Usage: fmt.Sprintf("ask for a passphrase of at least %d characters (one line of standard input) and make the secret from it", shortestPassphrase)},
			&cli.StringFlag{Name: "for",
				Usage: "`NAME` of a project or a site, with --passphrase: the same passphrase gives another secret for another name"},
		},
		Action: makeSecret,
	}
}

func makeSecret(c *cli.Context) error {
	name := c.Args().First()
	switch {
	case c.NArg() != 1:
		return clikit.Usage(errors.New("want the name of the file to make: zipper secret FILE"))
	case c.IsSet("for") != c.Bool("passphrase"):
		return clikit.Usage(errors.New("--passphrase and --for NAME require each other: with the project's or site's name, equal passphrases of others give other secrets"))
	}
	secret := jobenv.NewSecret()
	if c.Bool("passphrase") {
		words, err := ask(os.Stdin, os.Stderr, "passphrase: ")
		if err != nil {
			return err
		}
		if secret, err = stretch(words, c.String("for")); err != nil {
			return err
		}
	}
	return writePrivate(name, secret+"\n")
}

// writePrivate makes a file that only its owner can read; an existing file is an error.
func writePrivate(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already: remove it first if it is no longer needed", name)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(name)
	}
	return err
}

// ask reads a line. A terminal does not show the line while the user types it.
func ask(in *os.File, out io.Writer, prompt string) (string, error) {
	fd := int(in.Fd())
	if was, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
		fmt.Fprint(out, prompt)
		silent := *was
		silent.Lflag &^= unix.ECHO
		if err := unix.IoctlSetTermios(fd, unix.TCSETS, &silent); err != nil {
			return "", err
		}
		defer fmt.Fprintln(out)
		defer func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) }() // restores the terminal
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !(errors.Is(err, io.EOF) && line != "") {
		return "", fmt.Errorf("no passphrase: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

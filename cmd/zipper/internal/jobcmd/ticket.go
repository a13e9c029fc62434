package jobcmd

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/keyfile"
	"github.com/leidenzipper/zipper/internal/ticket"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Ticket returns the command zipper ticket.
func Ticket() *cli.Command {
	return &cli.Command{
		Name:  "ticket",
		Usage: "make a ticket, which admits a user's job at forwarders that demand tickets",
		Description: `zipper ticket --make-key /etc/zipper/site                  once: the site's key; copy site.pub to the zipper nodes
zipper forwarder --ticket-key /etc/zipper/site.pub         on these
zipper ticket --secret-file s --job j1                     the user: prints the job's key, for the next line
zipper ticket --key /etc/zipper/site --user alice --job j1 --job-key KEY --ranks 64 --expires 8h >j1.ticket
zipper run --job j1 --secret-file s --ticket-file j1.ticket ...

A ticket names a user, a job, the maximum number of its ranks, and the time until which it may begin. Only a user who has
the job's secret can use it. It is a JSON Web Token (EdDSA, with the job's key as cnf).`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "make-key", Usage: "make the site's key in `FILE`, and its public half in FILE.pub"},
			&cli.StringFlag{Name: "key", Usage: "`FILE` with the site's key"},
			&cli.StringFlag{Name: "user", Usage: "`NAME` of the ticket's user, which the forwarder's log and status show"},
			&cli.StringFlag{Name: "job", Usage: "job `ID`"},
			&cli.StringFlag{Name: "job-key", Usage: "the job's `KEY`, in place of --secret-file"},
			&cli.StringFlag{Name: "secret-file", Usage: "`FILE` with the job's secret, from which the key is made"},
			&cli.IntFlag{Name: "ranks", Usage: "maximum number of ranks of the job"},
			&cli.DurationFlag{Name: "expires", Value: 24 * time.Hour, Usage: "how long from now on the job may begin"},
		},
		Action: makeTicket,
	}
}

func makeTicket(c *cli.Context) error {
	if c.Args().Present() {
		return clikit.Usage(fmt.Errorf("unexpected argument %q", c.Args().First()))
	}
	if f := c.String("make-key"); f != "" {
		k, err := keyfile.Create(f)
		if err == nil {
			err = keyfile.WritePublic(f+".pub", k.Public().(ed25519.PublicKey))
		}
		return err
	}
	if c.String("job") == "" {
		return clikit.Usage(errors.New("want --job ID"))
	}
	key, err := jobKey(c)
	if err != nil {
		return clikit.Usage(err)
	}
	if c.String("key") == "" {
		fmt.Println(wire.FormatHostKey([wire.PublicKeyLen]byte(key)))
		return nil
	}
	site, err := keyfile.Private(c.String("key"))
	if err != nil {
		return clikit.Usage(fmt.Errorf("--key: %w", err))
	}
	now := time.Now()
	text, err := ticket.Make(ticket.Ticket{User: c.String("user"), Job: c.String("job"), Key: key,
		Ranks:   c.Int("ranks"),
		Expires: now.Add(c.Duration("expires"))}, site, now)
	if err != nil {
		return clikit.Usage(err)
	}
	_, err = fmt.Fprintln(os.Stdout, text)
	return err
}

// jobKey returns the job's public key, as it was given or from its secret.
func jobKey(c *cli.Context) (ed25519.PublicKey, error) {
	if s := c.String("job-key"); s != "" {
		k, err := wire.ParseHostKey(s)
		if err != nil {
			return nil, errors.New("--job-key: want the output of zipper ticket --secret-file FILE --job ID")
		}
		return k[:], nil
	}
	f := c.String("secret-file")
	if f == "" {
		return nil, errors.New("want the job's key (--job-key), or its secret (--secret-file)")
	}
	secret, err := clikit.ReadSecret(f)
	if err != nil {
		return nil, err
	}
	return handshake.Key(c.String("job"), secret).Public().(ed25519.PublicKey), nil
}

package clikit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/spec"
)

// JobFromFlags returns the job of the job file, if there is one, and of the flags, which win.
func JobFromFlags(c *cli.Context) (*spec.Job, error) {
	job := &spec.Job{}
	if f := c.String("file"); f != "" {
		var err error
		if job, err = spec.ReadFile(f); err != nil {
			return nil, err
		}
	}
	if specs := c.StringSlice("cluster"); len(specs) > 0 {
		job.Clusters = nil
		for _, s := range specs {
			cl, err := spec.ParseCluster(s)
			if err != nil {
				return nil, err
			}
			job.Clusters = append(job.Clusters, cl)
		}
	}
	if c.Command.Name == "run" { // other commands do not start the ranks of the groups
		if err := job.UseHetGroups(); err != nil {
			return nil, err
		}
	}
	if err := orderFromFlags(c, job); err != nil {
		return nil, err
	}
	if c.IsSet("network") {
		job.Networks = c.StringSlice("network")
	}
	if specs := c.StringSlice("zipper"); len(specs) > 0 {
		job.Zippers = nil
		for _, s := range specs {
			z, err := spec.ParseZipper(s)
			if err != nil {
				return nil, fmt.Errorf("--zipper: %w", err)
			}
			job.Zippers = append(job.Zippers, z)
		}
	}
	if c.Args().Present() {
		job.Program = c.Args().Slice()
	}
	if c.IsSet("timeout") {
		if job.Timeout = c.Duration("timeout"); job.Timeout <= 0 {
			return nil, fmt.Errorf("--timeout %v: want a positive duration such as 60s", job.Timeout)
		}
	}
	switch p := c.String("poll"); p {
	case "":
	case "adaptive", "busy", "event":
		job.Poll = p
	default:
		return nil, fmt.Errorf("--poll %s: want adaptive, busy or event", p)
	}
	if c.IsSet("protocol") {
		job.Protocol = c.String("protocol")
	}
	if c.IsSet("level") {
		job.Level = c.String("level")
	}
	if c.IsSet("patience") {
		job.Patience = c.String("patience")
	}
	if c.IsSet("on-loss") {
		job.OnLoss = c.String("on-loss")
	}
	if c.IsSet("quorum") {
		job.Quorum = c.String("quorum")
	}
	var err error
	if job.Collectives, err = tuning(c.String("tuning")); err != nil {
		return nil, err
	}
	if c.IsSet("job") {
		job.ID = c.String("job")
	}
	if f := c.String("secret-file"); f != "" {
		var err error
		if job.Secret, err = ReadSecret(f); err != nil {
			return nil, err
		}
	}
	if f := c.String("ticket-file"); f != "" {
		var err error
		if job.Ticket, err = jobenv.ReadTicket(f); err != nil {
			return nil, fmt.Errorf("--ticket-file: %w", err)
		}
	}
	if job.Ticket == "" {
		if job.Ticket, err = jobenv.Ticket(os.Getenv); err != nil {
			return nil, err
		}
	}
	policy := c.String("host-keys")
	if err := jobenv.ParseHostKeys(policy); err != nil {
		return nil, fmt.Errorf("--host-keys: %w", err)
	}
	if err := job.AddHostKeys(policy, jobenv.KnownFile(os.Getenv), AskHostKey(c.Context, job.Timeout)); err != nil {
		return nil, err
	}
	if err := Rsh(c, job); err != nil {
		return nil, err
	}
	if c.IsSet("log") {
		job.Log = c.String("log")
	}
	return job, nil
}

// Rsh sets the remote shell from --rsh.
func Rsh(c *cli.Context, job *spec.Job) error {
	if r := c.String("rsh"); r != "" {
		if job.Rsh = strings.Fields(r); len(job.Rsh) == 0 {
			return errors.New("--rsh: want a command")
		}
	}
	return nil
}

// orderFromFlags sets the order of ranks from --plan, which has hosts as well, or from --order.
func orderFromFlags(c *cli.Context, job *spec.Job) (err error) {
	switch plan, order := c.String("plan"), c.String("order"); {
	case plan != "" && order != "":
		return errors.New("--plan and --order both give the order of ranks: leave one out")
	case plan != "":
		return job.UsePlan(plan)
	case order != "":
		job.Order, err = jobenv.ParseOrder(order, job.Layout())
	}
	return err
}

// AskHostKey returns a function that asks forwarders for their keys, each for at most limit; 0
// means a minute.
func AskHostKey(ctx context.Context, limit time.Duration) func(address string) (string, error) {
	return func(address string) (string, error) { return dial.HostKey(ctx, address, cmp.Or(limit, time.Minute)) }
}

// HostKeysFlag is the flag --host-keys.
var HostKeysFlag = &cli.StringFlag{Name: "host-keys", EnvVars: []string{jobenv.VarHostKeys},
	Usage: "policy for forwarders whose key is in neither the job nor known_forwarders: strict (refuse them), accept-new (ask for the key once and keep it); default: accept them"}

// TicketFlag is the flag --ticket-file.
var TicketFlag = &cli.StringFlag{Name: "ticket-file", Usage: "`FILE` with the job's ticket, for forwarders that demand one (zipper ticket)"}

// ReadSecret reads the file of --secret-file.
func ReadSecret(name string) (string, error) {
	secret, err := jobenv.ReadSecret(name, os.Getenv)
	if err != nil {
		return "", fmt.Errorf("--secret-file: %w", err)
	}
	return secret, nil
}

//go:build openmpi || mpich

// Zipper-npb is the MPI program behind `zipper bench npb`: it runs one kernel and prints its result.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/leidenzipper/zipper/bench/npb"
	"github.com/leidenzipper/zipper/mmpi"
)

func main() {
	asJSON := flag.Bool("json", false, "print the result as one line of JSON")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: zipper-npb [-json] KERNEL CLASS   (cg, ep, ft, is, lu, mg; S, W, A, B, C)")
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "zipper-npb:", err)
		os.Exit(1)
	}
}

func run(kernel, class string, asJSON bool) error {
	c, err := npb.ParseClass(class)
	if err != nil {
		return err
	}
	p, err := mmpi.Init(mmpi.Funneled)
	if err != nil {
		return err
	}
	r, err := npb.Run(p, kernel, c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "zipper-npb:", err)
		p.Abort(1)
	}
	if p.World().Rank() == 0 {
		if asJSON {
			err = json.NewEncoder(os.Stdout).Encode(r)
		} else {
			fmt.Printf("%s class %s, %s on %d ranks: %.3f s, %.1f Mop/s, verified: %v\n  %s\n", r.Kernel, r.Class, r.Size, r.Ranks, r.Seconds, r.Mops, r.Verified, r.Detail)
		}
	}
	if ferr := p.Finalize(); err == nil {
		err = ferr
	}
	if err == nil && !r.Verified {
		return fmt.Errorf("%s class %s did not verify", r.Kernel, r.Class)
	}
	return err
}

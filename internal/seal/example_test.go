package seal_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/leidenzipper/zipper/internal/seal"
)

// Two ranks that know the job's secret seal the frames between them. No one in between can read,
// change or repeat them.
func ExampleParty_Pair() {
	job := seal.NewJob("j1", "the job's secret")
	a, err := job.NewParty([seal.PublicLen]byte{1}, 0, 11) // of random bytes in real programs
	if err != nil {
		log.Fatal(err)
	}
	b, err := job.NewParty([seal.PublicLen]byte{2}, 1, 12)
	if err != nil {
		log.Fatal(err)
	}
	out, _, err := a.Pair(&b.Member)
	if err != nil {
		log.Fatal(err)
	}
	_, in, err := b.Pair(&a.Member)
	if err != nil {
		log.Fatal(err)
	}
	frame, err := out.Seal(nil, []byte("head"), []byte("payload"), seal.Small)
	if err != nil {
		log.Fatal(err)
	}
	again := append([]byte(nil), frame...)

	var seen seal.Window
	plain, err := in.Open(frame, len("head"), seal.Small, &seen)
	fmt.Printf("%s %v\n", plain, err)
	_, err = in.Open(again, len("head"), seal.Small, &seen)
	fmt.Println("repeated:", errors.Is(err, seal.ErrRepeated))
	// Output:
	// payload <nil>
	// repeated: true
}

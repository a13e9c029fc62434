package ticket_test

import (
	"crypto/ed25519"
	"fmt"
	"log"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/ticket"
)

// A ticket is a site's permission for a user to run a job. Forwarders check it with the public half
// of the site's key.
func ExampleMake() {
	site := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) // a real key is random
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	text, err := ticket.Make(ticket.Ticket{User: "alice", Job: "j1", Ranks: 64, Expires: now.Add(time.Hour),
		Key: handshake.Key("j1", "the job's secret").Public().(ed25519.PublicKey)}, site, now)
	if err != nil {
		log.Fatal(err)
	}
	public := site.Public().(ed25519.PublicKey)
	t, err := ticket.Parse(text, public, now.Add(time.Minute))
	fmt.Println(t.User, t.Job, t.Ranks, err)
	_, err = ticket.Parse(text, public, now.Add(2*time.Hour))
	fmt.Println("two hours later it is good:", err == nil)
	// Output:
	// alice j1 64 <nil>
	// two hours later it is good: false
}

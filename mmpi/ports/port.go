// Package ports connects jobs that were started independently: MPI's ports and their published
// names. A port belongs to a process, which waits there for a process of another job.
//
//	meeting      a job of two processes, one of each job, at a forwarder that both reach, in which
//	             each sends the other a description of its job and of the processes to connect
//	connection   a job of all these processes, with an engine of its own; its clusters are those of
//	             both jobs
//	name         a meeting with the publisher as one end, which sends the port
//
// For forwarders all of them are jobs. Their ids are made from the accepting job's
// (handshake.JobID), and their keys from the secret that both jobs have.
//
// Functions may be called by any goroutine. They block until they have finished or ctx ends.
package ports

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/mmpi/boot"
)

// Self is this process and its job.
type Self struct {
	Job   jobenv.Job
	Local boot.Local
	Rank  int // virtual rank
	// Mixed says that the job's clusters differ in their format of long double.
	Mixed bool
}

// Port is the place at which a process waits for one of another job.
type Port struct {
	ID        string   // id of the meeting
	Level     string   // level of the meeting
	Print     string   // fingerprint of the job's key, which reveals a different secret
	Addresses []string // addresses of forwarders, as the accepting process reaches them
}

const scheme = "zipper"

// Open makes a port of this process.
func (s *Self) Open() Port {
	level, _ := jobenv.ParseLevel(s.Job.Level, s.Job.Protocol, s.Job.Networks) // it was parsed before
	id := handshake.MeetingID(s.Job.ID, fresh())
	return Port{ID: id, Level: level.String(), Print: s.print(id), Addresses: s.Job.Forwarders}
}

func fresh() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// print returns a fingerprint of the key that this process has for a job.
func (s *Self) print(id string) string {
	sum := sha256.Sum256(handshake.Key(id, s.Job.Secret).Public().(ed25519.PublicKey))
	return hex.EncodeToString(sum[:6])
}

// String returns the port's name in MPI.
func (p Port) String() string {
	return strings.Join([]string{scheme, p.ID, p.Level, p.Print, strings.Join(p.Addresses, ",")}, "|")
}

// Parse parses the result of String.
func Parse(name string) (Port, error) {
	f := strings.Split(name, "|")
	if len(f) != 5 || f[0] != scheme || !handshake.IsMeeting(f[1]) || f[4] == "" {
		return Port{}, fmt.Errorf("port name %.40q: want one that MPI_Open_port of a zipped job has made", name)
	}
	return Port{ID: f[1], Level: f[2], Print: f[3], Addresses: strings.Split(f[4], ",")}, nil
}

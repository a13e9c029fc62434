package link

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
)

// TestManyDirectLinksAreRead checks that a rank with many direct links reads all of them, also
// without the descriptor that tells which have something to read.
func TestManyDirectLinksAreRead(t *testing.T) {
	for name, fault := range map[string]func(fd int){
		"all":                func(int) {},
		"no descriptor":      nil,
		"closed":             func(fd int) { unix.Close(fd) },
		"replaced by a file": func(fd int) { unix.Dup3(0, fd, unix.O_CLOEXEC) },
	} {
		t.Run(name, func(t *testing.T) {
			const peers = 5
			system := &epolls{Linux: wait.NewLinux(), fails: fault == nil}
			var pairs [][2]int
			for peer := 1; peer <= peers; peer++ {
				pairs = append(pairs, [2]int{0, peer})
			}
			n := newTestNet(t, []uint32{1, peers}, netOptions{rows: 1, direct: pairs}, 1,
				func(c *Config) {
					if c.World.Rank == 0 {
						c.System = system
					}
				})
			send := func(what string, from ...int) {
				for _, peer := range from {
					n.ranks[peer].locked(func() { n.ranks[peer].sendEager(0, fmt.Append(nil, what, peer)) })
				}
				n.settle()
				for _, peer := range from {
					got := n.ranks[0].got[peer]
					if len(got) == 0 || string(got[len(got)-1]) != fmt.Sprint(what, peer) {
						t.Fatalf("%s of rank %d does not arrive: %q", what, peer, got)
					}
				}
			}
			for _, p := range pairs {
				n.meet(p[0], p[1])
			}
			send("first", 1, 2, 3, 4, 5)
			if fault != nil {
				fault(system.fd)
			}
			send("second", 1, 3)
			n.part(0, 3)
			send("over the forwarder", 3)
			n.meet(0, 3)
			send("again", 3, 5)
		})
	}
}

// epolls is a system that notes the descriptor of a set, or has none.
type epolls struct {
	wait.Linux
	fails bool
	fd    int
}

func (s *epolls) Epoll() (fd int, err error) {
	if s.fails {
		return -1, errors.New("too many open files")
	}
	s.fd, err = s.Linux.Epoll()
	return s.fd, err
}

// BenchmarkStepOfIdleLinks measures a look at all links of a rank, none of which has anything to
// read. A rank with one partner in use takes that time for its other links.
func BenchmarkStepOfIdleLinks(b *testing.B) {
	for _, links := range []int{0, 1, 2, 4, 16, 64} {
		b.Run(fmt.Sprint(links), func(b *testing.B) {
			forwarder, _ := tcpLinks(b)
			u := newProcess(b, 0, []uint32{1, 65}, func(c *Config) {
				c.Links = []transport.Link{forwarder}
				c.Direct = map[int]Opener{}
				for i := range links {
					c.Direct[1+i] = nil
				}
			})
			u.locked(u.set.Start)
			for i := range links {
				l, _ := tcpLinks(b)
				if !u.set.DirectUp(1+i, l) {
					b.Fatal("the link is not taken")
				}
			}
			u.lock.Lock()
			defer u.lock.Unlock()
			for b.Loop() {
				u.set.Step()
			}
		})
	}
}

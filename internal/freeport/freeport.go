// Package freeport finds ports for servers that a test starts later.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
)

// Ports are tried from first on, so many: they lie below those that the kernel gives to connections
// (32768 and more, by default), of which one might be taken until the server begins.
const first, among = 10000, 20000

// Of gives n different ports of TCP on which nobody listens, on any address.
func Of(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range among {
		port := first + rand.IntN(among)
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
		if len(ports) == n {
			return ports
		}
	}
	t.Fatal("there are no free ports")
	return nil
}

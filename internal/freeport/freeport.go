// Package freeport finds ports for servers that a test starts later.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
)

// Ports are tried from first on, among many of them. They are below those that the kernel assigns
// to connections (32768 and higher by default), of which one could be taken until the server
// starts.
const first, among = 10000, 20000

// Of returns n different TCP ports without a listener on any address.
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

//go:build !rdma || !cgo

package verbs

import (
	"context"
	"strings"
	"testing"
)

func TestStubNamesTheRemedy(t *testing.T) {
	_, dial := Dialer{}.Dial(context.Background(), "verbs:h:1")
	_, listen := Listen("verbs:h:1", Options{})
	for _, err := range []error{dial, listen} {
		if err == nil || !strings.Contains(err.Error(), "-tags rdma") {
			t.Errorf("got %v", err)
		}
	}
}

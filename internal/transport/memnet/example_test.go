package memnet_test

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
)

// A link moves as many bytes as it can without blocking. After ErrAgain the caller waits for its
// descriptor.
func ExamplePipe() {
	a, b := memnet.Pipe(memnet.Options{})
	defer a.Close()
	defer b.Close()
	p := make([]byte, 16)
	_, err := b.TryRead(p)
	fmt.Println("nothing yet:", errors.Is(err, transport.ErrAgain))
	n, err := a.TryWrite([]byte("he"), []byte("llo"))
	fmt.Println(n, err)
	n, err = b.TryRead(p)
	fmt.Println(string(p[:n]), err)
	// Output:
	// nothing yet: true
	// 5 <nil>
	// hello <nil>
}

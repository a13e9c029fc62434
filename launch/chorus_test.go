package launch

import (
	"bytes"
	"context"
	"io"
	"testing"
)

func TestChorus(t *testing.T) {
	h := testHalf(t, `exec >&2
for r in 0 1 2 3; do echo "MMPI: virtual rank $r: the forwarder is lost"; done
echo "MMPI: native rank 0 on n1: no forwarder"
echo "MMPI: native rank 1 on n1: no forwarder"
echo "MMPI: virtual rank 4: something else"
echo "a line"; echo "a line"; exit 1`)
	var errs bytes.Buffer
	if status, err := h.Run(context.Background(), nil, io.Discard, &errs); status != 1 || err != nil {
		t.Fatal(status, err)
	}
	const want = "MMPI: virtual rank 0: the forwarder is lost\nMMPI: native rank 0 on n1: no forwarder\nMMPI: virtual rank 4: something else\na line\na line\n" +
		"MMPI: and 3 more ranks of cluster a: the forwarder is lost\nMMPI: and 1 more rank of cluster a: no forwarder\n"
	if errs.String() != want {
		t.Errorf("got\n%swant\n%s", &errs, want)
	}
}

package launch

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/leidenzipper/zipper/launch/spec"
)

// A half on another host: `rsh HOST zipper join --piped` there reads its description from its
// standard input, and then the program's input. Both are framed, so that the end of the program's
// input differs from the end of the connection: when the connection is lost, the half ends.
//
//	u8 kind ('H' half as JSON, 'D' data, 'E' end of data)   u32 length, little-endian   bytes
const (
	pipeHalf = 'H'
	pipeData = 'D'
	pipeEnd  = 'E'
)

func writePipe(w io.Writer, kind byte, body []byte) error {
	b := binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(body)))
	_, err := w.Write(append(b, body...))
	return err
}

func readPipe(r io.Reader) (kind byte, body []byte, err error) {
	var h [5]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(h[1:])
	if n > pipeMax {
		return 0, nil, fmt.Errorf("frame of %d bytes on the pipe from the launcher", n)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(r, body)
	return h[0], body, err
}

// runRemote runs the half over the remote shell (its last word is the host).
func (h *Half) runRemote(ctx context.Context, rsh []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	zipper := h.Cluster.ZipperPath()
	body, err := json.Marshal(h)
	if err != nil {
		return 1, err
	}
	if len(body) > pipeMax {
		return 1, errors.New("the job's description is too large for the pipe")
	}
	pr, pw := io.Pipe()
	defer pr.Close()
	go func() {
		// Errors mean that the remote side is gone, which supervise notices by itself.
		if writePipe(pw, pipeHalf, body) != nil {
			return
		}
		buf := make([]byte, stdinPiece)
		for stdin != nil {
			n, err := stdin.Read(buf)
			if n > 0 && writePipe(pw, pipeData, buf[:n]) != nil {
				return
			}
			if err != nil {
				break
			}
		}
		_ = writePipe(pw, pipeEnd, nil) // the pipe stays open, because its end would end the half
	}()
	var words []string
	words = append(words, rsh[1:]...)
	words = append(words, ShellPath(zipper), "join", "--piped")
	cmd := exec.Command(rsh[0], words...)
	errs := newEndingFilter(stderr, h.Mark)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pr, stdout, errs
	status, err := supervise(ctx, cmd, rand.Text(), nil)
	switch started := errs.end(); {
	case err != nil:
		err = fmt.Errorf("cluster %s: cannot start %s: %w", h.Cluster.Name, rsh[0], err)
	case started: // zipper was, and the status is the half's.
	case status == 255:
		err = fmt.Errorf("cluster %s: %s %s ended with 255: you cannot log in to that host without a password (try ssh -o BatchMode=yes %[3]s true)",
			h.Cluster.Name, rsh[0], rsh[len(rsh)-1])
	case status == 126:
		err = fmt.Errorf("cluster %s: host %s cannot run %s: install zipper for its architecture there, and say where it is (zipper: PATH in the job file, where {arch} stands for x86_64 or aarch64)",
			h.Cluster.Name, rsh[len(rsh)-1], zipper)
	case status == 127:
		err = fmt.Errorf("cluster %s: host %s has no %s: install zipper there, or say where it is (zipper: PATH in the job file)",
			h.Cluster.Name, rsh[len(rsh)-1], zipper)
	}
	return status, err
}

// RunPiped is the other end: it reads a half and runs it until the half or the connection ends.
func RunPiped(ctx context.Context, r io.Reader, stdout, stderr io.Writer) (status int, err error) {
	kind, body, err := readPipe(r)
	if err != nil || kind != pipeHalf {
		return 2, fmt.Errorf("join --piped is for zipper run, which describes the half on standard input: %w",
			errors.Join(err, fmt.Errorf("kind %q", kind)))
	}
	var h Half
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return 2, fmt.Errorf("the half on standard input comes from another version of zipper: %w", err)
	}
	defer func() { writeEnding(stderr, h.Mark, status) }()
	if h.Cluster.Dir == "" {
		h.Cluster.Dir = h.WorkDir
		if _, err := os.Stat(h.WorkDir); err != nil {
			h.Cluster.Dir, _ = os.UserHomeDir()
		}
	}
	if err := h.Prepare(ctx); err != nil {
		if h.ReportsEnd {
			err = h.NotStarted(ctx, err)
		}
		return 1, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pr, pw := io.Pipe()
	go func() {
		defer cancel() // the launcher has ended
		for {
			kind, body, err := readPipe(r)
			switch {
			case err != nil:
				pw.CloseWithError(io.EOF)
				return
			case kind == pipeData:
				// The write blocks while the program does not read. Input that the program never
				// reads is dropped at the end.
				_, _ = pw.Write(body)
			case kind == pipeEnd:
				pw.Close()
			}
		}
	}()
	defer pr.Close()
	return h.Run(ctx, pr, stdout, stderr)
}

// ShellPath quotes the path of the zipper command for a POSIX shell on the host where it is
// installed, whose architecture {arch} is.
func ShellPath(path string) string {
	return strings.ReplaceAll(Quote(path), spec.Arch, `'"$(uname -m)"'`) // a path with braces is in quotes
}

// Quote quotes s as one word for a POSIX shell.
func Quote(s string) string {
	if s != "" && !bytes.ContainsAny([]byte(s), " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return s
	}
	return "'" + string(bytes.ReplaceAll([]byte(s), []byte("'"), []byte(`'\''`))) + "'"
}

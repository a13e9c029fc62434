// Package agent talks with a process that answers questions, on this host or another one: one JSON
// value a line on its standard input and output. The agent first sends a description of itself.
// Then it answers each question, until its input ends.
package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"time"
)

// Serve runs an agent: it writes hello to w, then answers the questions on r until r ends. A
// question that cannot be parsed ends it with an error.
func Serve[Q, A any](r io.Reader, w io.Writer, hello any, answer func(Q) A) error {
	out := json.NewEncoder(w)
	if err := out.Encode(hello); err != nil {
		return err
	}
	in := json.NewDecoder(bufio.NewReader(r))
	for {
		var q Q
		if err := in.Decode(&q); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
				return nil
			}
			return err
		}
		if err := out.Encode(answer(q)); err != nil {
			return err
		}
	}
}

// Conn is a connection to an agent. It is not safe for concurrent use.
type Conn struct {
	questions io.WriteCloser
	in        *json.Encoder
	out       *json.Decoder
	wait      func(time.Duration)
}

// New returns a connection over two streams. Closing questions must end the agent.
func New(answers io.Reader, questions io.WriteCloser) *Conn {
	return &Conn{
		questions: questions, in: json.NewEncoder(questions), out: json.NewDecoder(answers),
		wait: func(time.Duration) {},
	}
}

// Here runs an agent in this process, such as a function around Serve.
func Here(serve func(r io.Reader, w io.Writer) error) *Conn {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() { outW.CloseWithError(serve(inR, outW)) }()
	c := New(outR, inW)
	c.wait = func(time.Duration) { outR.Close() }
	return c
}

// Start starts an agent as another process, perhaps through a remote shell. It skips lines that
// login scripts print before the hello. If the error is nil the caller must close the connection
// and wait for it.
func Start(cmd *exec.Cmd) (*Conn, error) {
	w, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	r, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := New(&greeted{r: bufio.NewReader(r)}, w)
	c.wait = func(patience time.Duration) {
		timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // an agent that ended too early has made Hello or Ask fail before
		timer.Stop()
	}
	return c, nil
}

// greeted is a stream without the lines before its first JSON object.
type greeted struct {
	r    *bufio.Reader
	over bool
}

func (g *greeted) Read(p []byte) (int, error) {
	for !g.over {
		if c, err := g.r.Peek(1); err != nil || c[0] == '{' {
			g.over = true
		} else if _, err := g.r.ReadString('\n'); err != nil {
			g.over = true
		}
	}
	return g.r.Read(p)
}

// Hello reads the description that the agent sends of itself. It must be called once, before any
// question.
func (c *Conn) Hello(v any) error { return c.out.Decode(v) }

// Ask sends a question and waits for its answer.
func (c *Conn) Ask(question, answer any) error {
	if err := c.in.Encode(question); err != nil {
		return err
	}
	return c.out.Decode(answer)
}

// Close ends the agent's input, and with it the agent. Wait afterwards.
func (c *Conn) Close() { c.questions.Close() }

// Wait waits for the end of an agent of Start after Close, and kills it after patience. It does not
// wait for an agent of Here, whose answers it discards, nor for one of New.
func (c *Conn) Wait(patience time.Duration) { c.wait(patience) }

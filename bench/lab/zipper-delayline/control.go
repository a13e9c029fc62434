//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/bench/lab/delayline"
)

// serve answers one command on each connection.
func (l *line) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // the listener is closed
		}
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			words, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil {
				return
			}
			answer, err := l.command(strings.Fields(words))
			if err != nil {
				answer = "error: " + err.Error()
			}
			fmt.Fprintln(conn, answer)
		}()
	}
}

func (l *line) command(words []string) (answer string, err error) {
	if len(words) == 0 {
		return "", errors.New("want stats, reset, set or cut")
	}
	args := words[1:]
	switch words[0] {
	case "stats":
		text, err := json.Marshal(l.stats())
		return string(text), err
	case "reset":
		for _, c := range l.ways {
			c.mu.Lock()
			c.way.Reset()
			c.mu.Unlock()
		}
		return "ok", nil
	case "set":
		return "ok", l.set(args)
	case "cut":
		if len(args) != 1 {
			return "", errors.New("want cut TIME, such as 20s")
		}
		d, err := time.ParseDuration(args[0])
		if err != nil || d < 0 {
			return "", fmt.Errorf("cut %s: want a time such as 20s", args[0])
		}
		for _, c := range l.ways {
			c.mu.Lock()
			c.way.Cut(c.now() + d)
			c.mu.Unlock()
		}
		return "ok", nil
	}
	return "", fmt.Errorf("%s: want stats, reset, set or cut", words[0])
}

// set changes options, in both directions or in neither.
func (l *line) set(pairs []string) error {
	for _, c := range l.ways {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	o := l.options
	if len(pairs) == 0 {
		return fmt.Errorf("want set NAME=VALUE..., of %s", strings.Join(delayline.Names(), ", "))
	}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if err := o.Set(name, value); err != nil {
			return err
		}
	}
	for _, c := range l.ways {
		if err := c.way.Change(o); err != nil {
			return err // the first direction refuses everything that the second would
		}
	}
	l.options = o
	return nil
}

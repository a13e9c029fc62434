package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
)

// Plain TCP over the long link, for comparison: streams of a program that does nothing else.

// tcpReceive prints the result of receive as JSON, after a line "listening".
func tcpReceive(address string, n int, warm, seconds time.Duration) error {
	rates, err := receive(address, n, warm, seconds, func(string) { fmt.Println("listening") })
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(rates)
}

// receive accepts n streams at an address and returns the rate of each in Mbit/s, over a time that
// begins after the warm-up. It calls listening with the address once streams may connect.
func receive(address string, n int, warm, seconds time.Duration, listening func(string)) (rates []float64, err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	listening(l.Addr().String())
	counts := make([]atomic.Int64, n)
	var conns []net.Conn
	for range n {
		c, err := l.Accept()
		if err != nil {
			return nil, err
		}
		defer c.Close()
		conns = append(conns, c)
	}
	for i, c := range conns {
		go func() {
			b := make([]byte, 256<<10)
			for {
				got, err := c.Read(b)
				if counts[i].Add(int64(got)); err != nil {
					return
				}
			}
		}()
	}
	snapshot := func() (at time.Time, all []int64) {
		for i := range counts {
			all = append(all, counts[i].Load())
		}
		return time.Now(), all
	}
	time.Sleep(warm)
	begin, from := snapshot()
	time.Sleep(seconds)
	end, to := snapshot()
	for i := range n {
		rates = append(rates, float64(to[i]-from[i])*8/1e6/end.Sub(begin).Seconds())
	}
	return rates, nil
}

// tcpSend fills n streams to an address until the receiver closes them.
func tcpSend(address string, n int) error {
	var conns []net.Conn
	for range n {
		c, err := net.DialTimeout("tcp", address, 20*time.Second)
		if err != nil {
			return err
		}
		conns = append(conns, c)
	}
	var wait sync.WaitGroup
	for _, c := range conns {
		wait.Go(func() {
			b := make([]byte, 256<<10)
			for {
				if _, err := c.Write(b); err != nil {
					return // the receiver has closed it
				}
			}
		})
	}
	wait.Wait()
	return nil
}

// tcp measures n plain TCP streams from gA to gB, and returns the rate of each in Mbit/s.
func (m *measurement) tcp(ctx context.Context, n int, warm, seconds time.Duration) (rates []float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, warm+seconds+time.Minute)
	defer cancel()
	const address = "10.81.4.2:5201"
	receiver := m.lab.On("gB", self, "tcp-receive", address, strconv.Itoa(n), warm.String(), seconds.String())
	receiver.Stderr = os.Stderr
	out, err := receiver.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := receiver.Start(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { receiver.Process.Kill() })
	defer stop()
	defer func() { _ = receiver.Wait() }() // the rates are its result
	word := make([]byte, len("listening\n"))
	if _, err := io.ReadFull(out, word); err != nil {
		return nil, fmt.Errorf("the receiver on gB: %w", err)
	}
	sender := m.lab.On("gA", self, "tcp-send", address, strconv.Itoa(n))
	sender.Stderr = os.Stderr
	if err := sender.Start(); err != nil {
		receiver.Process.Kill()
		return nil, err
	}
	err = json.NewDecoder(out).Decode(&rates)
	sender.Process.Kill()
	_ = sender.Wait() // killed
	if err != nil {
		err = errors.Join(fmt.Errorf("the receiver on gB: %w", err), context.Cause(ctx))
	}
	return rates, err
}

// plain runs this program as an end of plain TCP streams.
func plain(args []string) error {
	if len(args) >= 3 {
		n, err := strconv.Atoi(args[2])
		if err != nil || n < 1 {
			return drive.Usage(fmt.Errorf("%s streams", args[2]))
		}
		switch {
		case args[0] == "tcp-send" && len(args) == 3:
			return tcpSend(args[1], n)
		case args[0] == "tcp-receive" && len(args) == 5:
			warm, err := time.ParseDuration(args[3])
			seconds, err2 := time.ParseDuration(args[4])
			if err := errors.Join(err, err2); err != nil {
				return drive.Usage(err)
			}
			return tcpReceive(args[1], n, warm, seconds)
		}
	}
	return drive.Usage(errors.New("want tcp-receive ADDRESS STREAMS WARM TIME or tcp-send ADDRESS STREAMS"))
}

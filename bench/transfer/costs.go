package transfer

import (
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/contention/calibrate"
)

// costs returns the processor times of this host: for reading and writing by a TCP connection
// within the host, whose two ends do the work of sender and receiver on one thread; and until a
// thread that is woken runs.
func costs() (c calibrate.Costs, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from, to, err := connected()
	if err != nil {
		return c, err
	}
	defer unix.Close(from)
	defer unix.Close(to)
	one, err := median(func() (float64, error) { return moving(from, to, 1) })
	if err != nil {
		return c, err
	}
	many, err := median(func() (float64, error) { return moving(from, to, costsBytes) })
	if err != nil {
		return c, err
	}
	waking, err := median(waking)
	if err != nil {
		return c, err
	}
	return calibrate.Costs{Switch: waking, Call: one / 2, Byte: max(0, many-one) / 2 / costsBytes}, nil
}

func median(measure func() (float64, error)) (float64, error) {
	var list []float64
	for range costsTimes {
		x, err := measure()
		if err != nil {
			return 0, err
		}
		list = append(list, x)
	}
	slices.Sort(list)
	return list[len(list)/2], nil
}

// connected returns the ends of a TCP connection within this host.
func connected() (from, to int, err error) {
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(listener)
	if err := unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, 0, err
	}
	if err := unix.Listen(listener, 1); err != nil {
		return 0, 0, err
	}
	addr, err := unix.Getsockname(listener)
	if err != nil {
		return 0, 0, err
	}
	if from, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return 0, 0, err
	}
	// The buffer holds more than is written at a time: a writer that had to wait would wait for
	// itself.
	if err = unix.SetsockoptInt(from, unix.SOL_SOCKET, unix.SO_SNDBUF, 4*costsBytes); err == nil {
		err = unix.SetsockoptInt(from, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	if err == nil {
		err = unix.Connect(from, addr)
	}
	if err == nil {
		to, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC)
	}
	if err != nil {
		unix.Close(from)
	}
	return from, to, err
}

// moving returns the processor time of writing n bytes and reading them.
func moving(from, to, n int) (seconds float64, err error) {
	b := make([]byte, n)
	begin, err := processorTime(unix.CLOCK_THREAD_CPUTIME_ID)
	if err != nil {
		return 0, err
	}
	for range costsCalls {
		for sent, got := 0, 0; got < n; {
			if sent < n {
				k, err := unix.Write(from, b[sent:])
				if err != nil {
					return 0, err
				}
				sent += k
			}
			k, err := unix.Read(to, b)
			if err != nil {
				return 0, err
			}
			got += k
		}
	}
	end, err := processorTime(unix.CLOCK_THREAD_CPUTIME_ID)
	return (end - begin).Seconds() / costsCalls, err
}

// waking returns the time from waking a thread until it runs.
func waking() (seconds float64, err error) {
	var there, back [2]int
	for _, p := range []*[2]int{&there, &back} {
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return 0, err
		}
		defer unix.Close(p[0])
		defer unix.Close(p[1])
	}
	over := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		over <- passing(there[0], back[1])
	}()
	begin := time.Now()
	var b [1]byte
	for range costsCalls {
		if _, err := unix.Write(there[1], b[:]); err != nil {
			return 0, err
		}
		if _, err := unix.Read(back[0], b[:]); err != nil {
			return 0, err
		}
	}
	return time.Since(begin).Seconds() / costsCalls / 2, <-over
}

func passing(in, out int) error {
	var b [1]byte
	for range costsCalls {
		if _, err := unix.Read(in, b[:]); err != nil {
			return err
		}
		if _, err := unix.Write(out, b[:]); err != nil {
			return err
		}
	}
	return nil
}

package abi

// #include <stdlib.h>
// #include <string.h>
// #include "abi.h"
import "C"

import (
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/mmpi/ports"
)

func argument(err error) error {
	if err == nil {
		return nil
	}
	return &engine.Error{Code: engine.ErrArg, Reason: err.Error()}
}

// copyOut copies a string to a buffer of C of room bytes, with a terminating 0.
func copyOut(s string, to *C.char, room int) error {
	if len(s) >= room {
		return &engine.Error{Code: engine.ErrArg, Reason: "the name of the port is too long: give the job a shorter id, or fewer forwarders"}
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(to)), room), s+"\x00")
	return nil
}

// connects returns an error if this process cannot connect to other jobs.
func connects() error {
	if len(links.self.Job.Forwarders) == 0 {
		return &engine.Error{Code: engine.ErrArg, Reason: "processes that MPI_Comm_spawn has started cannot connect to other jobs"}
	}
	return nil
}

//export ze_port_open
func ze_port_open(name *C.char, room int32) C.int {
	return with(func(*engine.Engine) error {
		if err := connects(); err != nil {
			return err
		}
		return copyOut(links.self.Open().String(), name, int(room))
	})
}

//export ze_port_close
func ze_port_close(name *C.char) C.int {
	_, err := ports.Parse(C.GoString(name))
	return result(argument(err))
}

//export ze_meet
func ze_meet(port *C.char, accepts int32, world *int32, n int32, cell *engineCell, plan *unsafe.Pointer) C.int {
	p, err := ports.Parse(C.GoString(port))
	if err != nil {
		return result(argument(err))
	}
	members := slices.Clone(unsafe.Slice(world, n))
	links.run(cell.cell(), func(ctx context.Context) error {
		if err := connects(); err != nil {
			return err
		}
		meet := links.self.Accept
		if accepts == 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, links.self.Job.Timeout)
			defer cancel()
			meet = links.self.Connect
		}
		made, err := meet(ctx, p, members)
		if err != nil {
			return err
		}
		b := made.Bytes()
		*plan = C.CBytes(b)
		cell.cell().Bytes = int64(len(b))
		return nil
	})
	return C.Z_OK
}

//export ze_join
func ze_join(plan uintptr, size int64, accepts int32, cell *engineCell, n, low *int32, numbers **int32) C.int {
	p, err := ports.ParsePlan(bytes(plan, size))
	if err != nil {
		return result(argument(err))
	}
	list := links.numbersOf(p)
	*n, *low, *numbers = int32(len(list)), int32(len(p.Accept.Members)), (*int32)(unsafe.Pointer(kept(list)))
	c := cell.cell()
	links.run(c, func(ctx context.Context) (err error) {
		c.Source = 0
		if !p.Inside() {
			c.Source, err = links.join(ctx, p, accepts != 0, list)
		}
		return err
	})
	return C.Z_OK
}

// named returns the error of an operation on a published name, with the code ErrArg if the name is
// the cause.
func named(err error) error {
	if errors.Is(err, ports.ErrTaken) || errors.Is(err, ports.ErrUnknown) {
		return argument(err)
	}
	return err
}

//export ze_publish
func ze_publish(name, port *C.char, cell *engineCell) C.int {
	service, at := C.GoString(name), C.GoString(port)
	links.run(cell.cell(), func(ctx context.Context) error {
		if err := connects(); err != nil {
			return err
		}
		return named(links.names.Publish(ctx, &links.self, service, at))
	})
	return C.Z_OK
}

//export ze_lookup
func ze_lookup(name, port *C.char, cell *engineCell) C.int {
	service := C.GoString(name)
	links.run(cell.cell(), func(ctx context.Context) error {
		if err := connects(); err != nil {
			return err
		}
		at, err := links.self.Lookup(ctx, service)
		if err != nil {
			return named(err)
		}
		return copyOut(at, port, C.Z_PORT_NAME)
	})
	return C.Z_OK
}

//export ze_unpublish
func ze_unpublish(name *C.char) C.int {
	return result(argument(links.names.Unpublish(C.GoString(name))))
}

//export ze_result
func ze_result(cell *engineCell) C.int { return result(links.result(cell.cell())) }

//export ze_link_drop
func ze_link_drop(link int32) {
	links.mu.Lock()
	defer links.mu.Unlock()
	if link > 0 && link <= C.Z_LINKS && links.of[link].comms == 0 {
		links.end(link)
	}
}

//export ze_cluster
func ze_cluster(link int32) int32 {
	links.mu.Lock()
	defer links.mu.Unlock()
	return links.of[link].cluster
}

//export ze_comm_why
func ze_comm_why(comm int32) C.int {
	if comm>>linkShift == 0 {
		return C.Z_OK
	}
	return over(comm>>linkShift, (*engine.Engine).Err)
}

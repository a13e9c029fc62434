package engine

import (
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// Long segments (take) are not copied into the socket: it gets the program's pages, through a pipe. They may change only when the receiver has what is in
// them, as TCP may send them again and, where all is on one machine, reads the receiver them there. So does a send's buffer: it is the program's again at Fin
// (request.go). Where a segment's request no longer cares (detach) its receiver has the bytes already, or gets them another way, and throws these away.

// pipeSize has a place for each page of the longest segment and of its head.
const pipeSize = 1 << 20

// giving reports whether what is next in the segment at hand goes through the pipe, and puts the segment's head there if it is the first.
func (r *rail) giving() bool {
	s := &r.seg
	if s.given {
		return r.gives || r.pipe.Len() > 0
	}
	if !s.active || !r.gives || len(s.head) < wire.HeaderLen+wire.DataLen || len(s.data) <= r.most+r.crumb {
		return false
	}
	if r.pipe == nil {
		pipe, err := transport.NewPipe(pipeSize)
		if err != nil { // the user has too many
			r.gives = false
			return false
		}
		r.pipe = pipe
	}
	if err := r.pipe.Write(s.head); err != nil {
		r.gives = false
		r.dropPipe()
		return false
	}
	s.given = true
	return true
}

// give writes as much of the segment at hand as the link takes. Results are those of TryWrite.
func (r *rail) give() (int, error) {
	s := &r.seg
	if in := r.pipe.Len() - len(s.head); in < len(s.data) && r.gives {
		// Memory that is not made of pages, a device's, has to be copied: what is left of this segment, and what comes.
		r.gives = r.pipe.Give(s.data[in:]) == nil
	}
	if r.pipe.Len() == 0 {
		return 0, nil
	}
	return r.piper.TryDrain(r.pipe)
}

func (r *rail) dropPipe() {
	if r.pipe != nil {
		r.pipe.Close()
		r.pipe = nil
	}
}

package link

import (
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Long segments (segmentSize) are not copied into the socket: it gets the program's pages, through
// a pipe. The pages may change only when the receiver has what is in them. TCP may send them again,
// and where all is on one machine the receiver reads them there. A Source's buffer does stay that
// long: it is the program's again at Abandon. Where a segment's Source no longer cares (detach) its
// receiver has the bytes already, or gets them another way, and throws these away.

// splicing reports whether what is next in the segment at hand goes through the pipe, and puts the
// segment's head there if it is the first.
func (r *rail) splicing() bool {
	s := &r.seg
	if s.spliced {
		return r.splices || r.pipe.Len() > 0
	}
	if !s.active || !r.splices || len(s.head) < wire.HeaderLen+wire.DataLen || len(s.data) <= r.most+r.crumb {
		return false
	}
	if r.pipe == nil {
		pipe, err := transport.NewPipe(pipeSize)
		if err != nil { // the user has too many
			r.splices = false
			return false
		}
		r.pipe = pipe
	}
	if err := r.pipe.Write(s.head); err != nil {
		r.splices = false
		r.dropPipe()
		return false
	}
	s.spliced = true
	return true
}

// splice writes as much of the segment at hand as the link takes. Results are those of TryWrite.
func (r *rail) splice() (int, error) {
	s := &r.seg
	if in := r.pipe.Len() - len(s.head); in < len(s.data) && r.splices {
		// Memory that is not made of pages, a device's, has to be copied: what is left of this
		// segment, and what comes.
		r.splices = r.pipe.Give(s.data[in:]) == nil
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

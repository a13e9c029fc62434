package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
)

// A sealed frame is its head in the clear, the rest encrypted, the tag (16 bytes) and the number of
// the transmission (8 bytes, little endian). The tag is over the head as well. The nonce is 4 bytes
// of the key's own and the number, big endian. The number has the class of the frame in its first
// byte. The rest rises with each transmission of that class under a key, also if the same frame is
// sent again. So no nonce is used twice.

// Class is a kind of frames with an order of its own: two frames of one class hardly ever overtake
// each other.
type Class uint8

// These are the classes of frames.
const (
	Small Class = iota // all frames but large ones
	Bulk               // large frames, which may take other connections
	classes
)

const (
	tagLen = 16
	// Overhead is the number of bytes by which a sealed frame is longer.
	Overhead = tagLen + 8
	// lastNumber bounds the transmissions of a class under one key: a million per second for nine
	// years. AES-GCM allows for more.
	lastNumber = 1 << 48
	classShift = 56
)

var (
	// ErrForged means that a frame was changed in transit, or was not made by its sender.
	ErrForged = errors.New("it differs from the frame that its sender sealed (changed in transit, or forged)")
	// ErrRepeated means that a frame has arrived before, or is so late that this is no longer
	// known.
	ErrRepeated = errors.New("it was received before (a replay)")
	errUsedUp   = errors.New("seal: the key has reached its limit of frames")
)

// Sealer encrypts the frames of one direction.
type Sealer struct {
	aead    cipher.AEAD
	nonce   [saltLen + 8]byte
	numbers [classes]uint64
}

// Opener decrypts the frames of one direction.
type Opener struct {
	aead  cipher.AEAD
	nonce [saltLen + 8]byte
}

func ends(key []byte, there, back string) (*Sealer, *Opener, error) {
	s, o := new(Sealer), new(Opener)
	var err error
	if s.aead, err = cipherOf(key, there, s.nonce[:saltLen]); err != nil {
		return nil, nil, err
	}
	if o.aead, err = cipherOf(key, back, o.nonce[:saltLen]); err != nil {
		return nil, nil, err
	}
	return s, o, nil
}

func cipherOf(key []byte, info string, salt []byte) (cipher.AEAD, error) {
	k := expand(key, info, aesLen+saltLen)
	copy(salt, k[aesLen:])
	block, err := aes.NewCipher(k[:aesLen])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Seal appends a sealed frame of a class to out: head in the clear, plain encrypted, tag and
// number. plain may be in out's memory at the place of its ciphertext, right behind that of head,
// and must not overlap it otherwise. If out lacks room it is reallocated.
func (s *Sealer) Seal(out, head, plain []byte, class Class) ([]byte, error) {
	if s.numbers[class] >= lastNumber {
		return out, errUsedUp
	}
	s.numbers[class]++
	number := uint64(class)<<classShift | s.numbers[class]
	binary.BigEndian.PutUint64(s.nonce[saltLen:], number)
	from := len(out)
	out = append(out, head...)
	out = s.aead.Seal(out, s.nonce[:], plain, out[from:])
	return binary.LittleEndian.AppendUint64(out, number), nil
}

// Open decrypts a whole frame of a class in place. The first head bytes are in the clear. It
// returns the plain text; seen, which must be used for this class only, records that the frame has
// arrived. After an error the frame's bytes are lost, and none of the plain text has been revealed.
func (o *Opener) Open(frame []byte, head int, class Class, seen *Window) (plain []byte, err error) {
	if head < 0 || len(frame) < head+Overhead {
		return nil, ErrForged
	}
	end := len(frame) - 8
	number := binary.LittleEndian.Uint64(frame[end:])
	n := number & (1<<classShift - 1)
	if number>>classShift != uint64(class) || n == 0 || n > lastNumber {
		return nil, ErrForged
	}
	binary.BigEndian.PutUint64(o.nonce[saltLen:], number)
	if plain, err = o.aead.Open(frame[head:head], o.nonce[:], frame[head:end], frame[:head]); err != nil {
		return nil, ErrForged
	}
	if !seen.take(n) {
		clear(plain)
		return nil, ErrRepeated
	}
	return plain, nil
}

// windowLen is the largest distance of a late frame from the latest one. Default 4096. If several
// connections carry the large frames of a pair, these overtake each other by up to the content of
// one connection. That is at most the number of frames that a pair may have in flight.
const windowLen = 4096

// Window records the frames of a class that have arrived in one direction. The zero value records
// none.
type Window struct {
	last uint64
	bits [windowLen / 64]uint64 // for the windowLen numbers up to last, each at its remainder
}

// take records a number. It returns false if the number was recorded before, or is too old to tell.
func (w *Window) take(n uint64) bool {
	if n > w.last {
		if n-w.last >= windowLen {
			w.bits = [windowLen / 64]uint64{}
		} else {
			for k := w.last + 1; k < n; k++ {
				w.bits[k%windowLen/64] &^= 1 << (k % 64)
			}
		}
		w.last = n
		w.bits[n%windowLen/64] |= 1 << (n % 64)
		return true
	}
	if w.last-n >= windowLen || w.bits[n%windowLen/64]&(1<<(n%64)) != 0 {
		return false
	}
	w.bits[n%windowLen/64] |= 1 << (n % 64)
	return true
}

// Channel encrypts and decrypts the frames of one link. Each direction may be used by one goroutine
// at a time.
type Channel struct {
	sealer *Sealer
	opener *Opener
	seen   Window
}

func channel(key []byte, there, back string) (*Channel, error) {
	s, o, err := ends(key, there, back)
	if err != nil {
		return nil, err
	}
	return &Channel{sealer: s, opener: o}, nil
}

// Seal seals a frame, as Sealer.Seal does.
func (c *Channel) Seal(out, head, plain []byte) ([]byte, error) {
	return c.sealer.Seal(out, head, plain, Small)
}

// Open opens a frame, as Opener.Open does.
func (c *Channel) Open(frame []byte, head int) (plain []byte, err error) {
	return c.opener.Open(frame, head, Small, &c.seen)
}

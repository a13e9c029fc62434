package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
)

// A sealed frame is its head in the clear, what follows it encrypted, the tag (16 bytes) and the
// number of the transmission (8 bytes, little endian). The tag is over the head as well. The nonce
// is 4 bytes of the key's own and the number, big endian. The number has the class of the frame in
// its first byte; the rest rises with each transmission of that class under a key, also of the same
// frame once more. So no nonce is used twice.

// Class is a kind of frames that have an order of their own: of two of one class the second hardly
// overtakes the first.
type Class uint8

// Classes of frames.
const (
	Small Class = iota // all but
	Bulk               // large ones, which may take other connections
	classes
)

const (
	tagLen = 16
	// Overhead is by how much a sealed frame is longer.
	Overhead = tagLen + 8
	// lastNumber bounds the transmissions of a class under one key: a million a second for nine
	// years. AES-GCM allows for more.
	lastNumber = 1 << 48
	classShift = 56
)

var (
	// ErrForged says that a frame is not what its sender has sealed: it was changed on the way, or
	// made up.
	ErrForged = errors.New("it is not what its sender has sealed (changed on its way, or invented)")
	// ErrRepeated says that a frame has come before, or is so late that this is not known any more.
	ErrRepeated = errors.New("it has come before (somebody repeats what was sent)")
	errUsedUp   = errors.New("seal: so many frames were sent that the key is used up")
)

// Sealer seals what goes one way.
type Sealer struct {
	aead    cipher.AEAD
	nonce   [saltLen + 8]byte
	numbers [classes]uint64
}

// Opener opens what comes that way.
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

// Seal appends a sealed frame of a class to out: head as it is, plain encrypted, tag and number.
// plain may begin in out's memory where its encryption will, right behind head's place, and must
// not overlap it otherwise. Without room for all out grows.
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

// Open opens a whole frame of a class, of which head bytes are in the clear, in place, and returns
// what was sealed; seen notes that it has come, and is for this class alone. On an error what was
// sealed is lost, and nothing of it has been seen.
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

// windowLen is how far behind the latest a frame may come. Default 4096. Where several connections
// carry the large frames of a pair, these overtake each other by what one connection holds. That is
// at most all that a pair may have on its way.
const windowLen = 4096

// Window knows which frames of a class have come over a way. The zero value: none.
type Window struct {
	last uint64
	bits [windowLen / 64]uint64 // of the windowLen numbers up to last, each in its place by remainder
}

// take notes a number; false: it was there before, or is too old to tell.
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

// Channel seals and opens what goes over one link. Each direction is for one goroutine at a time.
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

// Seal is Sealer.Seal.
func (c *Channel) Seal(out, head, plain []byte) ([]byte, error) {
	return c.sealer.Seal(out, head, plain, Small)
}

// Open is Opener.Open.
func (c *Channel) Open(frame []byte, head int) (plain []byte, err error) {
	return c.opener.Open(frame, head, Small, &c.seen)
}

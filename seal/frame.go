package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
)

// A sealed frame is its head in the clear, what follows it encrypted, the tag (16 bytes) and the
// number of the transmission (8 bytes, little endian). The tag is over the head as well. The nonce
// is 4 bytes of the key's own and the number, big endian. The number rises with each transmission
// under a key, also of the same frame once more, so no nonce is used twice.

const (
	tagLen = 16
	// Overhead is by how much a sealed frame is longer.
	Overhead = tagLen + 8
	// lastNumber bounds the transmissions under one key: a million a second for nine years. AES-GCM
	// allows for more.
	lastNumber = 1 << 48
)

var (
	// ErrForged says that a frame is not what its sender has sealed: it was changed on the way, or
	// made up.
	ErrForged = errors.New("it is not what its sender has sealed (changed on its way, or invented)")
	// ErrRepeated says that a frame has come before, or after one that was sent later.
	ErrRepeated = errors.New("it has come before, or in the wrong order")
	errUsedUp   = errors.New("seal: so many frames were sent that the key is used up")
)

// Sealer seals what goes one way.
type Sealer struct {
	aead   cipher.AEAD
	nonce  [saltLen + 8]byte
	number uint64
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

// Seal appends a sealed frame to out: head as it is, plain encrypted, tag and number. plain may
// begin in out's memory where its encryption will, right behind head's place, and must not overlap
// it otherwise. Without room for all out grows.
func (s *Sealer) Seal(out, head, plain []byte) ([]byte, error) {
	if s.number >= lastNumber {
		return out, errUsedUp
	}
	s.number++
	binary.BigEndian.PutUint64(s.nonce[saltLen:], s.number)
	from := len(out)
	out = append(out, head...)
	out = s.aead.Seal(out, s.nonce[:], plain, out[from:])
	return binary.LittleEndian.AppendUint64(out, s.number), nil
}

// Open opens a whole frame of which head bytes are in the clear, in place, and returns what was
// sealed and the number. On an error what was sealed is lost, and nothing of it has been seen.
func (o *Opener) Open(frame []byte, head int) (plain []byte, number uint64, err error) {
	if head < 0 || len(frame) < head+Overhead {
		return nil, 0, ErrForged
	}
	end := len(frame) - 8
	number = binary.LittleEndian.Uint64(frame[end:])
	if number == 0 || number > lastNumber {
		return nil, 0, ErrForged
	}
	binary.BigEndian.PutUint64(o.nonce[saltLen:], number)
	plain, err = o.aead.Open(frame[head:head], o.nonce[:], frame[head:end], frame[:head])
	if err != nil {
		return nil, 0, ErrForged
	}
	return plain, number, nil
}

// Rising sees that numbers rise on a way that keeps order. The zero value has seen none.
type Rising struct{ last uint64 }

// Take notes a number; ErrRepeated: it does not rise. Only numbers of opened frames belong here.
func (r *Rising) Take(number uint64) error {
	if number <= r.last {
		return ErrRepeated
	}
	r.last = number
	return nil
}

// Channel seals and opens what goes over one link. Each direction is for one goroutine at a time.
type Channel struct {
	sealer *Sealer
	opener *Opener
	seen   Rising
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
	return c.sealer.Seal(out, head, plain)
}

// Open is Opener.Open of frames that come in the order in which they were sealed; some may be
// missing.
func (c *Channel) Open(frame []byte, head int) (plain []byte, err error) {
	plain, n, err := c.opener.Open(frame, head)
	if err == nil {
		err = c.seen.Take(n)
	}
	if err != nil {
		return nil, err
	}
	return plain, nil
}

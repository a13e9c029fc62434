// Package keyfile keeps Ed25519 keys in files, as PEM in the usual forms (PKCS #8 and PKIX), which
// openssl reads and writes as well. Functions are safe for concurrent use.
package keyfile

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

const (
	privateType = "PRIVATE KEY"
	publicType  = "PUBLIC KEY"
)

// Private reads a private key from a file that only its owner may use.
func Private(name string) (ed25519.PrivateKey, error) {
	b, err := jobenv.ReadPrivate(name, os.Getenv)
	if err != nil {
		return nil, err
	}
	der, err := decode(b, privateType)
	if err == nil {
		var k any
		if k, err = x509.ParsePKCS8PrivateKey(der); err == nil {
			if k, ok := k.(ed25519.PrivateKey); ok {
				return k, nil
			}
			err = errors.New("it is of another kind")
		}
	}
	return nil, fmt.Errorf("%s: want an Ed25519 private key in PEM: %w", name, err)
}

// Public reads a public key, also from the file of a private one.
func Public(name string) (ed25519.PublicKey, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if p, _ := pem.Decode(b); p != nil && p.Type == privateType {
		k, err := Private(name)
		if err != nil {
			return nil, err
		}
		return k.Public().(ed25519.PublicKey), nil
	}
	der, err := decode(b, publicType)
	if err == nil {
		var k any
		if k, err = x509.ParsePKIXPublicKey(der); err == nil {
			if k, ok := k.(ed25519.PublicKey); ok {
				return k, nil
			}
			err = errors.New("it is of another kind")
		}
	}
	return nil, fmt.Errorf("%s: want an Ed25519 public key in PEM: %w", name, err)
}

func decode(b []byte, kind string) ([]byte, error) {
	p, rest := pem.Decode(b)
	switch {
	case p == nil:
		return nil, errors.New("the file has no PEM block")
	case p.Type != kind:
		return nil, fmt.Errorf("the file has a block of type %q", p.Type)
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("more follows")
	}
	return p.Bytes, nil
}

// Create makes a new private key and its file, with the directories above it. The error matches
// fs.ErrExist if the file exists.
func Create(name string) (ed25519.PrivateKey, error) {
	_, k, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return nil, err
	}
	return k, write(name, 0o600, pem.EncodeToMemory(&pem.Block{Type: privateType, Bytes: der}))
}

// WritePublic writes the public half to a new file, readable for all users. The error matches
// fs.ErrExist if the file exists.
func WritePublic(name string, k ed25519.PublicKey) error {
	der, err := x509.MarshalPKIXPublicKey(k)
	if err != nil {
		return err
	}
	return write(name, 0o644, pem.EncodeToMemory(&pem.Block{Type: publicType, Bytes: der}))
}

// write writes a file completely or not at all, so that a process that starts at the same time
// never reads a part.
func write(name string, mode os.FileMode, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), name)
}

// Open reads a private key, or makes it if there is none yet. made reports whether it did.
func Open(name string) (k ed25519.PrivateKey, made bool, err error) {
	if k, err = Private(name); !errors.Is(err, os.ErrNotExist) {
		return k, false, err
	}
	if k, err = Create(name); errors.Is(err, os.ErrExist) { // another process was faster
		k, err = Private(name)
		return k, false, err
	}
	return k, err == nil, err
}

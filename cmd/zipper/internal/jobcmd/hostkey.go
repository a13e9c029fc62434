package jobcmd

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/internal/keyfile"
	"github.com/leidenzipper/zipper/internal/wire"
)

// noHostKeyFile is the name that requests a new key, which is kept in memory only.
const noHostKeyFile = "none"

// hostKey returns the forwarder's key: that of the file with this name, or of the file in the state
// directory if the name is empty. It makes the file if it does not exist. Without a state
// directory, or with the name noHostKeyFile, the key lasts as long as the forwarder runs.
func hostKey(name string, log *zap.Logger) (key ed25519.PrivateKey, err error) {
	made := true
	if name == noHostKeyFile {
		name = ""
		_, key, err = ed25519.GenerateKey(nil)
	} else {
		name, key, made, err = keptHostKey(name, log)
	}
	if err != nil {
		return nil, err
	}
	log.Info("host key", zap.String("key",
		wire.FormatHostKey([wire.PublicKeyLen]byte(key.Public().(ed25519.PublicKey)))),
		zap.String("file", name), zap.Bool("new", made))
	return key, nil
}

// keptHostKey returns the key in a file, and the file's name.
func keptHostKey(name string, log *zap.Logger) (file string, key ed25519.PrivateKey, made bool, err error) {
	asked := name != ""
	if !asked {
		dir, err := stateDir(os.Getenv)
		if err == nil {
			name = filepath.Join(dir, "host_key")
		}
	}
	key, made, err = keyfile.Open(name)
	if err != nil && !asked && (errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission)) {
		log.Warn("cannot keep the host key: the next start has another one (--host-key FILE)", zap.Error(err))
		_, key, err = ed25519.GenerateKey(nil)
	}
	return name, key, made, err
}

// stateDir returns the directory where this user's forwarders keep their state: systemd's directory
// for a service, else that of the XDG base directory specification.
func stateDir(get func(string) string) (string, error) {
	if dir := get("STATE_DIRECTORY"); dir != "" {
		return dir, nil
	}
	if dir := get("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "zipper"), nil
	}
	home := get("HOME")
	if home == "" {
		return "", errors.New("HOME is not set")
	}
	return filepath.Join(home, ".local", "state", "zipper"), nil
}

package jobcmd

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/internal/keyfile"
	"github.com/leidenzipper/zipper/wire"
)

// hostKey is the forwarder's: of the file that was asked for, else of the one in its state
// directory. It is made if it is not there. Where a state directory cannot be had the key is good
// for as long as the forwarder runs.
func hostKey(name string, log *zap.Logger) (ed25519.PrivateKey, error) {
	asked := name != ""
	if !asked {
		dir, err := stateDir(os.Getenv)
		if err == nil {
			name = filepath.Join(dir, "host_key")
		}
	}
	key, made, err := keyfile.Open(name)
	if err != nil && (asked || !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission)) {
		return nil, err
	}
	if err != nil {
		log.Warn("no place to keep the host key: the next start has another one (--host-key FILE)", zap.Error(err))
		if _, key, err = ed25519.GenerateKey(nil); err != nil {
			return nil, err
		}
	}
	log.Info("host key", zap.String("key",
		wire.FormatHostKey([wire.PublicKeyLen]byte(key.Public().(ed25519.PublicKey)))),
		zap.String("file", name), zap.Bool("new", made))
	return key, nil
}

// stateDir is where this user's forwarders keep what they need again: systemd's directory for a
// service, else as the XDG base directory specification has it.
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

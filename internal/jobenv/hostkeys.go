package jobenv

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/internal/transport/addr"
	"github.com/leidenzipper/zipper/internal/wire"
)

// These are the values of ZIPPER_HOST_KEYS, the policy for forwarders whose host key is neither in
// the job nor in known_forwarders. A known key must match in any case.
const (
	AnyKey    = ""           // join them
	StrictKey = "strict"     // join none of them
	AcceptNew = "accept-new" // the launcher asks them once, and keeps their answers
)

// ParseHostKeys checks the name of a policy.
func ParseHostKeys(s string) error {
	if s != AnyKey && s != StrictKey && s != AcceptNew {
		return fmt.Errorf("host keys %q: want %s or %s, or nothing to accept forwarders whose key is not known", s,
			StrictKey, AcceptNew)
	}
	return nil
}

// Known has host keys by forwarder address, from a file of lines ADDRESS KEY like ssh's
// known_hosts.
type Known map[string]string

// KnownFile returns the name of the file of known keys, which ZIPPER_KNOWN_FORWARDERS (get) can
// change. It returns "" if the user has no directory for it.
func KnownFile(get func(string) string) string {
	if f := get(VarKnown); f != "" {
		return f
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "zipper", "known_forwarders")
}

// ReadKnown reads the file. A missing file has no keys.
func ReadKnown(name string) (Known, error) {
	if name == "" {
		return nil, nil
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	k, err := parseKnown(b)
	if err != nil {
		return nil, fmt.Errorf("%s, %w", name, err)
	}
	return k, nil
}

func parseKnown(b []byte) (Known, error) {
	k := Known{}
	s := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; s.Scan(); n++ {
		words := strings.Fields(s.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("line %d: want ADDRESS KEY", n)
		}
		if _, err := wire.ParseHostKey(words[1]); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if old := k[words[0]]; old != "" && old != words[1] {
			return nil, fmt.Errorf("line %d: %s has two keys: take the line out that is no longer right", n, words[0])
		}
		k[words[0]] = words[1]
	}
	return k, s.Err()
}

// AddKnown adds a forwarder's key to the file, and creates the file if it is missing.
func AddKnown(name, address, key string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s\n", address, key) // in one write, because several processes may add keys at a time
	return errors.Join(err, f.Close())
}

// SetHostKey sets the host key that a plain forwarder must have; "" allows any.
func (j *Job) SetHostKey(address, key string) {
	if key == "" {
		return
	}
	if j.HostKeys == nil {
		j.HostKeys = map[string]string{}
	}
	j.HostKeys[address] = key
}

// unknown returns the job's forwarders without a known key. Each has its addresses and a function
// that sets its key.
func (j *Job) unknown() (list []keyless) {
	for _, a := range j.Forwarders {
		if len(j.Zippers) == 0 && j.HostKeys[a] == "" {
			list = append(list, keyless{[]string{a}, func(key string) { j.SetHostKey(a, key) }})
		}
	}
	for i := range j.Zippers {
		z := &j.Zippers[i]
		if z.HostKey != "" {
			continue
		}
		k := keyless{set: func(key string) { z.HostKey = key }}
		for _, p := range z.Ports {
			if p.Address != "" {
				k.addresses = append(k.addresses, p.Address)
			}
		}
		list = append(list, k)
	}
	return list
}

type keyless struct {
	addresses []string
	set       func(key string)
}

// AskHostKeys calls ask for each key that is not known yet, by address, sets the keys in the job,
// and adds them to the file of known ones. A forwarder without a key ("" from ask) is an error.
// With a policy other than AcceptNew AskHostKeys does nothing.
func (j *Job) AskHostKeys(policy, file string, ask func(address string) (string, error)) error {
	if policy != AcceptNew {
		return nil
	}
	if file == "" {
		return fmt.Errorf("no place for known_forwarders: set %s to a file's name", VarKnown)
	}
	for _, k := range j.unknown() {
		if len(k.addresses) == 0 {
			continue
		}
		a := k.addresses[0]
		if here := j.Here(k.addresses); here != "" {
			a = here
		}
		key, err := ask(a)
		if err != nil {
			return err
		}
		if key == "" {
			return fmt.Errorf("the forwarder %s has no host key, and %s=%s", a, VarHostKeys, AcceptNew)
		}
		if err := AddKnown(file, a, key); err != nil {
			return err
		}
		k.set(key)
	}
	return nil
}

// Here returns the one of a forwarder's addresses at which this cluster reaches it, or "".
func (j *Job) Here(addresses []string) string {
	for _, a := range addresses {
		if slices.Contains(j.Forwarders, a) {
			return a
		}
	}
	return ""
}

// knowHostKeys reads the keys that the job does not have from the file of known ones. With the
// policy StrictKey it returns an error if a key is still unknown then.
func (j *Job) knowHostKeys(get func(string) string) error {
	list := j.unknown()
	if err := ParseHostKeys(get(VarHostKeys)); err != nil {
		return fmt.Errorf("%s: %w", VarHostKeys, err)
	}
	if len(list) == 0 {
		return nil
	}
	known, err := ReadKnown(KnownFile(get))
	if err != nil {
		return err
	}
	for _, k := range list {
		if key := known.Of(k.addresses...); key != "" {
			k.set(key)
		}
	}
	if left := j.unknown(); len(left) > 0 && get(VarHostKeys) == StrictKey {
		return UnknownKey(left[0].addresses[0])
	}
	return nil
}

// UnknownKey returns the error for a forwarder whose key must be known and is not.
func UnknownKey(address string) error {
	return fmt.Errorf("the host key of the forwarder %s is not known, and %s=%s: give it as %[1]s#KEY (zipper forwarder logs it, zipper status shows it), or accept its key once with %[2]s=%[4]s",
		address, VarHostKeys, StrictKey, AcceptNew)
}

// Of returns the key of the forwarder with these addresses, or "" if none of them is known. A TCP
// address without a port is looked up with DefaultPort, too.
func (k Known) Of(addresses ...string) string {
	for _, a := range addresses {
		if key := k[a]; key != "" {
			return key
		}
		if kind, _ := addr.Split(a); kind == addr.KindTCP {
			if key := k[addr.WithPort(a, DefaultPort)]; key != "" {
				return key
			}
		}
	}
	return ""
}

func withKey(s, key string) string {
	if key == "" {
		return s
	}
	return s + "#" + key
}

// cutKey cuts a host key off the end. A # in a path does not begin one.
func cutKey(s string) (rest, key string, has bool) {
	i := strings.LastIndexByte(s, '#')
	if i < 0 || strings.Contains(s[i:], "/") {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

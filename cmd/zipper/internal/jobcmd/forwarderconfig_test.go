package jobcmd

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/reach"
	"github.com/leidenzipper/zipper/internal/keyfile"
)

// configured returns the configuration of a command line of zipper forwarder, with a file of that
// text.
func configured(t *testing.T, text string, args ...string) (c *cli.Context, cfg forwarder.Config, file string,
	err error) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "forwarder.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := Forwarder()
	cmd.Action = func(line *cli.Context) error {
		if c, err = withConfig(line); err == nil {
			cfg, err = forwarderConfig(c)
		}
		return nil
	}
	app := &cli.App{Commands: []*cli.Command{cmd}, DisableSliceFlagSeparator: true} // as in zipper
	if err := app.Run(append([]string{"zipper", "forwarder", "--config", file}, args...)); err != nil {
		t.Fatal(err)
	}
	return c, cfg, file, err
}

func TestConfigFile(t *testing.T) {
	c, cfg, _, err := configured(t, `
# comment
listen: [127.0.0.1:1, "127.0.0.1:2"]
job: one
level: sealed
memory: 7
max-gathering: 3
metrics: true
max-ranks: 5
`, "--max-ranks", "6", "--trunk", "2")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.StringSlice("listen"); !reflect.DeepEqual(got, []string{"127.0.0.1:1", "127.0.0.1:2"}) {
		t.Errorf("listen: %q", got)
	}
	if !reflect.DeepEqual(cfg.Jobs, []string{"one"}) || cfg.Level.String() != "sealed" || cfg.Memory != 7<<20 ||
		cfg.MaxGathering != 3 || !c.Bool("metrics") {
		t.Errorf("the file: %+v", cfg)
	}
	if cfg.MaxRanks != 6 || cfg.Trunk != 2 {
		t.Errorf("the command line has precedence: %d, %d", cfg.MaxRanks, cfg.Trunk)
	}
	if cfg.MaxTimeout != forwarder.MaxTimeout {
		t.Errorf("a default: %v", cfg.MaxTimeout)
	}
}

func TestBadConfigFileIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"a\n":                           ":1: want lines such as",
		"level: checked\nlevle: sealed": `:2: there is no option "levle"`,
		"level: 7":                      "--level",
		"\nmemory: much":                ":2: memory: ",
		"job: a\njob: b":                ":2: job is given twice",
		"job: {a: b}":                   ":1: job: want a value or a list of values",
		"level:":                        ":1: level: want a value",
		"job: [":                        "yaml",
		"max-jobs-of-user: 1":           "--ticket-key",
		"config: other":                 "there is no option",
	} {
		if _, _, file, err := configured(t, text); err == nil || !strings.Contains(err.Error(), want) ||
			strings.HasPrefix(want, ":") && !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, _, err := configured(t, strings.Repeat("# long\n", maxConfig/6)); err == nil {
		t.Error("a file of a megabyte is read")
	}
	if _, cfg, _, err := configured(t, "# nothing\n"); err != nil || cfg.MaxRanks != forwarder.MaxRanks {
		t.Errorf("an empty file: %v", err)
	}
}

func TestOptionsThatNeedARestart(t *testing.T) {
	was, _, _, _ := configured(t, "loops: 1\nlevel: plain\nlisten: [127.0.0.1:1]\n")
	is, _, _, _ := configured(t, "loops: 2\nlevel: sealed\nlisten: [127.0.0.1:1, 127.0.0.1:2]\n")
	if got := strings.Join(needRestart(was, is), " "); got != "--listen --loops" {
		t.Errorf("need a restart: %s", got)
	}
	for _, name := range reloadable {
		known := false
		for _, f := range forwarderFlags() {
			known = known || f.Names()[0] == name
		}
		if !known {
			t.Errorf("no option %q", name)
		}
	}
}

// TestReloadableOptions checks that an option takes effect at a reload exactly if it sets fields
// that Forwarder.Reload takes. The fields of the other options need the system, and are not in
// forwarderConfig.
func TestReloadableOptions(t *testing.T) {
	dir := t.TempDir()
	secret, key := filepath.Join(dir, "secret"), filepath.Join(dir, "ticket")
	if err := os.WriteFile(secret, []byte("0123456789abcdefghijklmnopqrstuvwxyzABCD"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keyfile.Create(key); err != nil {
		t.Fatal(err)
	}
	elsewhere := []string{"listen", "status", "metrics", "accounting", "nat", "host-key", "log", "dial-allow", "dial-by"}
	values := map[string]string{"secret-file": secret, "ticket-key": key, "level": "sealed", "protocol": "classic",
		"poll": "event", "max-timeout": "1m"}
	_, plain, _, err := configured(t, "ticket-key: "+key)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range forwarderFlags() {
		name := f.Names()[0]
		if slices.Contains(elsewhere, name) {
			continue
		}
		text := "ticket-key: " + key + "\n" + name + ": " + cmp.Or(values[name], "7")
		if name == "ticket-key" {
			text = ""
		}
		_, cfg, _, err := configured(t, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		was, is, changed := reflect.ValueOf(plain), reflect.ValueOf(cfg), 0
		for i, field := range reflect.VisibleFields(was.Type()) {
			if !field.IsExported() || same(was.Field(i), is.Field(i)) {
				continue
			}
			changed++
			taken := slices.Contains([]string{"Level", "Secret", "Ticket", "Jobs", "Memory", "JobMemory"}, field.Name) ||
				strings.HasPrefix(field.Name, "Max")
			if taken != slices.Contains(reloadable, name) {
				t.Errorf("%s sets %s; Reload takes it: %v", name, field.Name, taken)
			}
		}
		if changed != 1 {
			t.Errorf("%s sets %d fields", name, changed)
		}
	}
}

// same tells whether two values are equal; for functions, whether both or neither are nil.
func same(a, b reflect.Value) bool {
	if a.Kind() == reflect.Func {
		return a.IsNil() == b.IsNil()
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// TestAddressIsDialledByItsCommand checks that links to an address are opened by its command, and
// links to others directly.
func TestAddressIsDialledByItsCommand(t *testing.T) {
	c, cfg, _, err := configured(t, "dial-by: [\"gB=printf 'a=b, c'\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	open, err := dialler(c, &cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	link, err := open(t.Context(), "gB:7475", func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	b := make([]byte, 20)
	if n, err := link.TryRead(b); err != nil || string(b[:n]) != "a=b, c" {
		t.Errorf("%q, %v", b[:n], err)
	}
	if _, err := open(t.Context(), "gB:7476", func(error) {}); !errors.Is(err, reach.ErrNotAllowed) {
		t.Errorf("another address: %v", err)
	}
	for _, bad := range []string{"gB", "=ssh", "gB= "} {
		c, cfg, _, err := configured(t, "", "--dial-by", bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dialler(c, &cfg, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "want ADDRESS=COMMAND") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

package native

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestABIFlagsAreFoundBuiltAndInstalled checks that the flags are found beside the libraries, as
// built, and beside their directory, as installed.
func TestABIFlagsAreFoundBuiltAndInstalled(t *testing.T) {
	for _, place := range []string{"lib", "lib/zipper"} {
		root := t.TempDir()
		libraries := filepath.Join(root, place)
		for _, dir := range []string{libraries, filepath.Join(root, "lib/pkgconfig")} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := flags(libraries); err == nil || !strings.Contains(err.Error(), "scripts/build") {
			t.Errorf("got %v", err)
		}
		text := "libdir=elsewhere\n\nCflags: -I${includedir} -I/mpi \nLibs: -L${libdir} -lmmpi-abi -lmpi_abi\n"
		if err := os.WriteFile(filepath.Join(root, "lib/pkgconfig/mmpi-abi.pc"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		compile, link, err := flags(libraries)
		if want := []string{"-L" + libraries, "-lmmpi-abi", "-lmpi_abi"}; err != nil || !slices.Equal(link, want) {
			t.Errorf("%q, %v, want %q", link, err, want)
		}
		if want := []string{"-I" + filepath.Join(root, "include"), "-I/mpi"}; !slices.Equal(compile, want) {
			t.Errorf("%q, want %q", compile, want)
		}
	}
}

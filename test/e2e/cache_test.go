package e2e

import "testing"

// TestRegistrationCache checks that programs print their native output with the library preloaded
// that watches the program's memory. Over TCP no memory is registered; scripts/verbs-lab tests the
// rest.
func TestRegistrationCache(t *testing.T) {
	b := New(t)
	clusters := mixedPair.clusters
	for _, file := range []string{"c/remap.c", "c/threads.c"} {
		prog := compileFor(b, clusters, file)
		args := []string{"serialized"}
		if file == "c/remap.c" {
			args = []string{"1000000"}
		}
		want := oracle.run(b, 2, append([]string{b.Compile(OpenMPI, "test/programs/"+file)}, args...)...)
		r := b.OK(b.Zipped(Job{Clusters: clusters, Env: []string{"ZIPPER_REGISTRATION_CACHE=1"}},
			append([]string{prog}, args...)...))
		if r.Stdout != want.Stdout {
			t.Errorf("%s prints\n%s, natively\n%s", file, r.Stdout, want.Stdout)
		}
	}
}

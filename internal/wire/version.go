package wire

import "fmt"

// An end supports all versions of the protocol from Oldest to Version. The end that sends the first
// frame on a link lists them in it (Challenge). The other end selects the newest version that both
// support for all that follows. A job has one version: that of its first Join. COMPATIBILITY.md
// says which changes a new version may make.
//
// Version is in version_release.go; version_next.go has the next one, for tests of different
// versions.

// Oldest is the oldest version of the protocol that this end supports.
const Oldest = 12

// Speaks reports whether this end supports a version.
func Speaks(version uint32) bool { return version >= Oldest && version <= Version }

// Common returns the newest version that both ends support. ok is false if there is none.
func (c *Challenge) Common() (version uint32, ok bool) {
	version = min(c.Version, Version)
	return version, version >= Oldest && version >= c.Oldest
}

// Versions returns the text for people of the versions that an end supports.
func Versions(oldest, newest uint32) string {
	if oldest >= newest { // a single version, or a peer from before Oldest existed
		return fmt.Sprintf("version %d", newest)
	}
	return fmt.Sprintf("versions %d to %d", oldest, newest)
}

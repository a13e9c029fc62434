package wire

import "fmt"

// An end speaks all versions of the protocol from Oldest to Version. Who speaks first on a link
// says which (Challenge), and the other end takes the newest that both speak for all that follows.
// A job has one version: that of its first Join. What may change from one version to the next is in
// COMPATIBILITY.md.
//
// Version is in version_release.go; version_next.go has the one after it, for tests of this.

// Oldest version of the protocol that is spoken here.
const Oldest = 12

// Speaks reports whether a version is spoken here.
func Speaks(version uint32) bool { return version >= Oldest && version <= Version }

// Common is the newest version that both ends speak; ok is false if there is none.
func (c *Challenge) Common() (version uint32, ok bool) {
	version = min(c.Version, Version)
	return version, version >= Oldest && version >= c.Oldest
}

// Versions says for people which versions somebody speaks.
func Versions(oldest, newest uint32) string {
	if oldest >= newest { // one, or, before there were several, no more was said
		return fmt.Sprintf("version %d", newest)
	}
	return fmt.Sprintf("versions %d to %d", oldest, newest)
}

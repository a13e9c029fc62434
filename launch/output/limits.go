package output

import "time"

// partialAfter is how long an incomplete line waits for its rest, and the top of a frame for the
// next line. A shorter time tears lines that come in pieces; with a longer one a user sees that a
// prompt comes late. Chosen, not measured.
const partialAfter = 100 * time.Millisecond

// slowWrite is the time for one write from which on the reader is slow, so that the rest of lines
// may have waited for it.
const slowWrite = partialAfter / 10

// maxLine is the length in bytes at which an incomplete line is passed on: more costs memory of
// each source, less tears lines.
const maxLine = 64 << 10

// longestTag is the length of the longest tag of Open MPI's, and a little more, in bytes.
const longestTag = 32

// longestBox is the number of lines of a launcher's box that are kept back before they pass after
// all: twice those of the longest box.
const longestBox = 32

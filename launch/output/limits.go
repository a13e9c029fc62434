package output

import "time"

// partialAfter is how long an incomplete line waits for its rest, and the top of a frame for the
// next line. Shorter tears lines that come in pieces, longer lets a person see that a question
// comes late. Chosen, not measured.
const partialAfter = 100 * time.Millisecond

// slowWrite is how long the reader may take over one write before the rest of lines is taken to
// have waited for it, too.
const slowWrite = partialAfter / 10

// maxLine is how much of a line is kept before it is passed on as it is, bytes: memory of each
// source against lines that are torn.
const maxLine = 64 << 10

// longestTag is how long a tag of Open MPI's may be, and a little more, bytes.
const longestTag = 32

// longestBox is how many lines of a launcher's box are kept back before they pass after all: twice
// those of the longest.
const longestBox = 32

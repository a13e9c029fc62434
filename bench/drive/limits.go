package drive

// longestReason is the longest reason for a failed job in a line of a table, in bytes: as much as a
// launcher prints about a process that a signal has killed, and a little more.
const longestReason = 400

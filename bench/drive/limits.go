package drive

// longestReason is how much is given of why a job failed where a table has room for one line,
// bytes: as much as a launcher prints of a process that a signal has killed, and a little more.
const longestReason = 400

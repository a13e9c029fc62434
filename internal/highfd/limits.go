package highfd

// highest is the highest number that Floor returns. Default 4096: the kernel's table of a process
// has 8 bytes for each number up to the highest in use, and select(2) of a program wants numbers
// below 1024. Trades that memory against programs that open many files.
const highest = 4096

// spare is how many numbers from Floor on must be free before the low ones are taken for a moment.
// Default 16: the runtime needs four, and other threads may need some in that moment. If fewer are
// free, the runtime's descriptors may get low numbers.
const spare = 16

package highfd

// highest is the highest number that Floor returns. Default 4096: the kernel's table of a process
// has 8 bytes for each number up to the highest in use, and select(2) of a program wants numbers
// below 1024. Trades that memory against programs that open many files. Z_HIGHEST_FD in
// cgo/libmmpi/core/limits.h is the same.
const highest = 4096

// span is how many numbers from Floor on are given in turn, while so many are free. Default 1024:
// as many descriptors are made before a number is given again, which takes longer than until a wait
// on a closed one fails. Trades that time against the kernel's table (highest).
const span = 1024

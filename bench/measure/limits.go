package measure

const (
	// maxSize is the largest message of a sweep, in bytes. 16 MiB: an alltoall of eight ranks then
	// takes 2 GiB of memory.
	maxSize = 16 << 20

	// largestSmall is the largest message of operations about many small ones (flood, threads,
	// beside), in bytes. 64 KiB: larger ones are bulk.
	largestSmall = 64 << 10
)

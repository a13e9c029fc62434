package wire

// How long segments of large messages are. Engines cut them and forwarders' buffers and pipes fit
// them, so both take the numbers from here; neither needs the other to keep to them.
const (
	// SegmentSize is the payload of a Data frame of a large message, 128 KiB. Longer: fewer system
	// calls for a byte; shorter: it is on its way to the next link sooner, and holds up less behind
	// it (docs/decisions/0018-splice-whole-segments.md).
	SegmentSize = 128 << 10

	// LongSegment: segments of direct links, and of fast flows, are so many times as long.
	LongSegment = 4

	// BulkFrom is from how many bytes of payload on a message goes over the further connections
	// between two forwarders, 8 KiB: larger ones would hold up small ones, and one connection alone
	// is slower.
	BulkFrom = 8 << 10
)

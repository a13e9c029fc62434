package wire

// These are the lengths of segments of large messages. Engines cut messages into them, and
// forwarders' buffers and pipes fit them, so both packages use these constants. They are here so
// that neither package depends on the other.
const (
	// SegmentSize is the payload of a Data frame of a large message, 128 KiB. Longer segments need
	// fewer system calls per byte. Shorter ones are sent on sooner, and delay less behind them
	// (docs/decisions/0018-splice-whole-segments.md).
	SegmentSize = 128 << 10

	// LongSegment is the factor by which segments of direct links, and of fast flows, are longer.
	LongSegment = 4

	// BulkFrom is the size of payload, in bytes, from which a message takes the additional
	// connections between two forwarders, 8 KiB. Larger messages would delay small ones, and a
	// single connection is slower.
	BulkFrom = 8 << 10
)

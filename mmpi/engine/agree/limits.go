package agree

// maxAhead is the most agreements of one communicator that may be under way. Default 65536. A
// message about a later one is not accepted, because it would need memory for all before it.
const maxAhead = 1 << 16

package rmawin

// ringSize is the number of receives of a window that are posted at a time. Default 8. More need
// memory, rma.MaxMessage bytes each; with fewer, messages wait.
const ringSize = 8

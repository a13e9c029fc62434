// Package contention is the root of the models that predict how long transfers
// between zipped clusters take and which resource is the bottleneck. It holds
// no code; see docs/howto/predicting.md and the packages below it:
//
//	num        one algorithm, exact or with floats
//	penalty    Martinasso–Méhaut penalties for InfiniBand
//	ethernet   the networks of Zhu's hierarchical Ethernet model
//	sharing    the resource graph and the sharing rules: max-min, streams, buffered, Zhu, penalty
//	solve      transfers through time; who limits whom; what doubling would gain
//	catalogue  the survey's 25 point-to-point models and its collectives
//	fit        parameters of those models from measured data, with errors
//	platform   the platform file and the resource graph made from it
//	pattern    messages from pattern files, generators and recorded traces
//	predict    platform + messages = prediction; tables and pictures
//	calibrate  measured rates into a platform file
//	quantity   rates, sizes and times as people write them
//	plan       placement of ranks on clusters and zipper nodes
//	pqueue     a priority queue
//
// testdata/vectors.json has worked examples of all models, computed with exact
// rationals from the published papers; the tests in this directory check every
// one of them.
package contention

package jobreport

// MaxClusters is the number of clusters of a job that a status lists, and of lost clusters whose
// reasons it has, 16, because users read the page.
const MaxClusters = 16

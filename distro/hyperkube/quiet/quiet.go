// Package quiet keeps client-go's work queues from measuring themselves: a
// control plane has about ninety, and each would wake twice a second for as
// long as it lives to report what it is not doing. What is lost are the
// workqueue_* series of the API server's /metrics.
//
// SetProvider counts once, and Kubernetes' own packages call it as they are
// loaded. Go initialises packages in the order of their paths, as soon as what
// they import is initialised; the path of this one, which imports only the
// queues, sorts before k8s.io.
package quiet

import (
	_ "unsafe" // for the name below

	"k8s.io/client-go/util/workqueue"
)

// The provider that measures nothing, which the queues begin with.
//
//go:linkname provider k8s.io/client-go/util/workqueue.globalMetricsProvider
var provider workqueue.MetricsProvider

func init() {
	workqueue.SetProvider(provider)
}

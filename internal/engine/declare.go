package engine

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Declarations are what the operator says of origins and caches. The zero value
// says nothing.
type Declarations struct {
	Budgets    map[string]int           // concurrency by origin
	Recomputes map[string]time.Duration // how long one takes, by origin
	Origins    map[string]string        // origin by cache
}

// Origin returns what is to be believed of the origin of a cache whose
// application says o: the operator's word where there is one.
func (d *Declarations) Origin(cache string, o signal.Origin) signal.Origin {
	if name, ok := d.Origins[cache]; ok {
		o = signal.Origin{Name: name}
	}
	if budget, ok := d.Budgets[o.Name]; ok {
		o.Budget = budget
	}
	if takes, ok := d.Recomputes[o.Name]; ok {
		o.Recompute = takes
	}
	return o
}

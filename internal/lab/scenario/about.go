package scenario

// SameOrigin reports whether two caches, by name, are the same or share an
// origin.
func (s *Scenario) SameOrigin(a, b string) bool {
	return a == b || s.Caches[a].Origin != "" && s.Caches[a].Origin == s.Caches[b].Origin
}

// Reads returns how many reads are expected in the whole run, but for what events
// do to the load: most of what it costs to run.
func (s *Scenario) Reads() float64 {
	perSecond := 0.0
	for i := range s.Workloads {
		perSecond += s.Workloads[i].Rate
	}
	return perSecond * s.Duration.Seconds()
}

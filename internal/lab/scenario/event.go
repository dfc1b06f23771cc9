package scenario

import "time"

// Event is something that happens to the fleet. Which fields count depends on
// Do; the rest must be absent.
type Event struct {
	At        time.Duration `yaml:"at"` // since the start
	Do        string        `yaml:"do"`
	Cache     string        `yaml:"cache"`
	Origin    string        `yaml:"origin"`
	Key       string        `yaml:"key"`
	Share     float64       `yaml:"share"`
	Factor    float64       `yaml:"factor"`
	For       time.Duration `yaml:"for"`
	Over      time.Duration `yaml:"over"`
	Down      time.Duration `yaml:"down"`
	TTL       time.Duration `yaml:"ttl"`
	Keys      int           `yaml:"keys"`
	Instances int           `yaml:"instances"`
	Build     string        `yaml:"build"`
	Protect   *Protections  `yaml:"protect"`
}

// What an [Event] may do.
const (
	DoFlush        = "flush"         // drop every value of Cache
	DoEvict        = "evict"         // drop Share of the values of Cache, at random
	DoInvalidate   = "invalidate"    // an instance deletes Key
	DoWarm         = "warm"          // write the values of the first Keys of Cache: at once, or through the origin if Over is set
	DoKillHolder   = "kill_holder"   // the process that holds the lock of Key dies; if none does, the next one that does, half a recompute later
	DoNodeLoss     = "node_loss"     // drop a slice of the key space of Cache that is Share of it
	DoSlow         = "slow"          // recomputes of Origin that start within For take Factor times as long
	DoFail         = "fail"          // Share of the recomputes of Origin that end within For fail
	DoLoad         = "load"          // Factor times the reads (of Cache, or all) for For
	DoDeploy       = "deploy"        // replace the instances by Build one by one over Over; Protect then holds for Cache, or all
	DoRestart      = "restart"       // replace Instances of them by the same build; each is away for Down
	DoDropReports  = "drop_reports"  // lose Share of all reports for For
	DoCounterReset = "counter_reset" // every process starts anew, and counts from zero
	DoShed         = "shed"          // Origin sheds for For
)

// field names one field of an Event.
type field string

const (
	fieldCache     field = "cache"
	fieldOrigin    field = "origin"
	fieldKey       field = "key"
	fieldShare     field = "share"
	fieldFactor    field = "factor"
	fieldFor       field = "for"
	fieldOver      field = "over"
	fieldDown      field = "down"
	fieldTTL       field = "ttl"
	fieldKeys      field = "keys"
	fieldInstances field = "instances"
	fieldBuild     field = "build"
	fieldProtect   field = "protect"
)

// verbs says which fields each event needs, and which it may have.
var verbs = map[string]struct{ needs, may []field }{
	DoFlush:        {needs: []field{fieldCache}},
	DoEvict:        {needs: []field{fieldCache, fieldShare}},
	DoInvalidate:   {needs: []field{fieldCache}, may: []field{fieldKey}},
	DoWarm:         {needs: []field{fieldCache}, may: []field{fieldKeys, fieldOver, fieldTTL}},
	DoKillHolder:   {needs: []field{fieldCache}, may: []field{fieldKey, fieldDown}},
	DoNodeLoss:     {needs: []field{fieldCache, fieldShare}},
	DoSlow:         {needs: []field{fieldOrigin, fieldFactor, fieldFor}},
	DoFail:         {needs: []field{fieldOrigin, fieldShare, fieldFor}},
	DoLoad:         {needs: []field{fieldFactor, fieldFor}, may: []field{fieldCache}},
	DoDeploy:       {needs: []field{fieldBuild}, may: []field{fieldOver, fieldProtect, fieldCache}},
	DoRestart:      {needs: []field{fieldInstances}, may: []field{fieldDown}},
	DoDropReports:  {needs: []field{fieldShare, fieldFor}},
	DoCounterReset: {},
	DoShed:         {needs: []field{fieldOrigin, fieldFor}},
}

// present lists the fields of e that are set.
func (e *Event) present() []field {
	var all []field
	add := func(set bool, f field) {
		if set {
			all = append(all, f)
		}
	}
	add(e.Cache != "", fieldCache)
	add(e.Origin != "", fieldOrigin)
	add(e.Key != "", fieldKey)
	add(e.Share != 0, fieldShare)
	add(e.Factor != 0, fieldFactor)
	add(e.For != 0, fieldFor)
	add(e.Over != 0, fieldOver)
	add(e.Down != 0, fieldDown)
	add(e.TTL != 0, fieldTTL)
	add(e.Keys != 0, fieldKeys)
	add(e.Instances != 0, fieldInstances)
	add(e.Build != "", fieldBuild)
	add(e.Protect != nil, fieldProtect)
	return all
}

// End is the instant at which e is over.
func (e *Event) End() time.Duration { return e.At + max(e.For, e.Over, e.Down) }

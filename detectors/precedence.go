package detectors

import (
	"math"
	"slices"
	"time"
)

// Relation says how findings of one detector go with those of others. If
// [Relation.Scope] is [Apart] they never have one cause. Otherwise the parent
// explains the child: of two that share what Scope says, the parent names the
// cause and the child is evidence for it.
type Relation struct {
	Parent   string
	Children []string
	Scope    Scope
	// Lead is how long before the parent a child may have begun and still be
	// explained by it. One that began later always is, as long as the parent
	// holds.
	Lead time.Duration
	// Lesser is set if the parent explains children of greater severity than
	// its own. Else it does not: what is only worth a ticket is no reason for
	// what wakes somebody.
	Lesser bool
	Why    string
}

// Scope is what two findings share if one explains the other.
type Scope uint8

// Scopes.
const (
	Apart      Scope = iota // nothing: they are two troubles
	SameKey                 // one key of one cache
	SameCache               // one cache
	SameOrigin              // one cache, or one origin that has a name
)

// How long before what explains it a finding may have begun.
const (
	// together is for what begins at one instant: detectors look at spans of
	// up to half a minute, and each has its own idea of the first sign.
	together = time.Minute
	// leadUp is for what comes before: a trigger before the loop it starts, or
	// what a deploy does before it is known to be the deploy.
	leadUp = 15 * time.Minute
	// ever is for what turns into its parent, however long that takes.
	ever time.Duration = math.MaxInt64
)

// precedence lists every detector's id, causes before what they cause. It
// decides between several explanations of one finding, and that no chain of
// explanations can end where it began.
var precedence = []string{
	"metastable-loop",
	"mass-invalidation",
	"penetration",
	"synchronized-expiry",
	"coalescing-bypass",
	"orphaned-lock",
	"hot-key-expiry",
	"process-local-coalescing",
	"overload",
	"retry-storm",
	"lock-convoy",
	"budget-exceeded",
	"lock-lost",
	"stale-overwrite",
	"expiry-forecast",
	"delta-poisoning",
	"early-refresh-excess",
	"early-refresh-ineffective",
	"underdosed-jitter",
	"vulnerable",
}

// relations has a row for every pair of detectors. Two that a row without
// Apart does not name together are apart by one of the rows at the end.
var relations = []Relation{
	// The loop is what is wrong, whatever set it off and whatever it does.
	{Parent: "metastable-loop", Children: []string{"retry-storm", "overload"}, Scope: SameOrigin, Lead: ever,
		Why: "they are what the loop looked like until it was seen to sustain itself"},
	{Parent: "metastable-loop", Children: []string{"mass-invalidation", "penetration", "synchronized-expiry", "coalescing-bypass"}, Scope: SameOrigin, Lead: leadUp,
		Why: "they set the loop off, and ending them does not end it"},
	{Parent: "metastable-loop", Children: []string{"hot-key-expiry", "process-local-coalescing", "lock-convoy", "orphaned-lock", "budget-exceeded"}, Scope: SameOrigin, Lead: leadUp,
		Why: "they set the loop off, or are what recomputes that time out and fill nothing come to"},

	// Of what makes many keys miss at once, the first in the list is the cause:
	// each also looks like the next.
	{Parent: "mass-invalidation", Children: []string{"penetration", "synchronized-expiry", "hot-key-expiry", "process-local-coalescing", "lock-convoy"}, Scope: SameCache, Lead: together,
		Why: "a cache that was emptied misses everything at once: many keys, hot keys, and what it knew not to exist"},
	{Parent: "mass-invalidation", Children: []string{"overload", "retry-storm", "budget-exceeded"}, Scope: SameOrigin, Lead: together,
		Why: "every read of a cache that was emptied is the origin's to answer"},
	{Parent: "penetration", Children: []string{"synchronized-expiry", "hot-key-expiry", "process-local-coalescing"}, Scope: SameCache, Lead: together,
		Why: "keys that do not exist miss again and again, and no expiry is to blame for that"},
	{Parent: "penetration", Children: []string{"overload", "retry-storm"}, Scope: SameOrigin, Lead: together,
		Why: "every look-up of what does not exist is the origin's to answer"},
	{Parent: "penetration", Children: []string{"budget-exceeded"}, Scope: SameOrigin, Lead: together, Lesser: true,
		Why: "look-ups of what does not exist wake somebody only by what they cost the origin"},
	{Parent: "synchronized-expiry", Children: []string{"hot-key-expiry", "process-local-coalescing", "lock-convoy"}, Scope: SameCache, Lead: together,
		Why: "some of the keys that expire together are hot, and their readers meet"},
	{Parent: "synchronized-expiry", Children: []string{"overload", "retry-storm", "budget-exceeded"}, Scope: SameOrigin, Lead: together,
		Why: "the refill of many keys queues at the origin, and callers lose patience"},
	{Parent: "synchronized-expiry", Children: []string{"expiry-forecast"}, Scope: SameCache, Lead: ever,
		Why: "it is what was forecast"},

	// Of what makes readers of one key recompute it side by side.
	{Parent: "coalescing-bypass", Children: []string{"hot-key-expiry"}, Scope: SameCache, Lead: leadUp, Lesser: true,
		Why: "readers meet because a build no longer keeps them apart; rolling it back mends both"},
	{Parent: "coalescing-bypass", Children: []string{"overload", "retry-storm", "budget-exceeded"}, Scope: SameOrigin, Lead: leadUp,
		Why: "the origin answers what used to be answered once per process"},
	{Parent: "orphaned-lock", Children: []string{"lock-convoy", "hot-key-expiry", "process-local-coalescing"}, Scope: SameKey, Lead: together,
		Why: "readers wait for a holder that is gone, and all recompute once its lock is"},
	{Parent: "hot-key-expiry", Children: []string{"process-local-coalescing", "lock-convoy"}, Scope: SameKey, Lead: together,
		Why: "they are how the same readers meet within processes, and at the lock"},
	{Parent: "hot-key-expiry", Children: []string{"overload", "retry-storm", "budget-exceeded"}, Scope: SameOrigin, Lead: together,
		Why: "what readers recompute side by side is load the origin need not have"},
	{Parent: "process-local-coalescing", Children: []string{"overload", "retry-storm", "budget-exceeded"}, Scope: SameOrigin, Lead: together,
		Why: "what every process recomputes for itself is load the origin need not have"},

	// Of load.
	{Parent: "overload", Children: []string{"retry-storm", "budget-exceeded"}, Scope: SameOrigin, Lead: leadUp,
		Why: "callers try again because the origin is overloaded by what they ask for the first time"},
	{Parent: "overload", Children: []string{"lock-convoy"}, Scope: SameOrigin, Lead: together,
		Why: "a recompute that takes longer holds its lock for longer"},
	{Parent: "retry-storm", Children: []string{"budget-exceeded"}, Scope: SameOrigin, Lead: leadUp,
		Why: "what exceeds the budget are second and third tries"},

	// Of values.
	{Parent: "lock-lost", Children: []string{"stale-overwrite"}, Scope: SameKey, Lead: leadUp, Lesser: true,
		Why: "a holder whose lock ran out writes after the next one"},

	// What has nothing to do with each other.
	{Parent: "mass-invalidation", Children: []string{"coalescing-bypass", "orphaned-lock"}, Scope: Apart,
		Why: "how readers are kept apart, and whether a holder lives, does not depend on what the cache lost"},
	{Parent: "penetration", Children: []string{"coalescing-bypass", "orphaned-lock", "lock-convoy"}, Scope: Apart,
		Why: "nobody waits long for each other over keys that differ from read to read"},
	{Parent: "synchronized-expiry", Children: []string{"coalescing-bypass", "orphaned-lock"}, Scope: Apart,
		Why: "many keys that each expire once are recomputed once each, however readers of one are kept apart"},
	{Parent: "coalescing-bypass", Children: []string{"orphaned-lock", "process-local-coalescing", "lock-convoy"}, Scope: Apart,
		Why: "where readers wait for one recompute, coalescing is not bypassed"},
	{Parent: "orphaned-lock", Children: []string{"overload", "retry-storm", "budget-exceeded"}, Scope: Apart,
		Why: "while the lock is there nothing is recomputed, and what comes after is found as what it is"},
	{Parent: "process-local-coalescing", Children: []string{"lock-convoy"}, Scope: Apart,
		Why: "a lock that holds between processes leaves no room for one recompute in each"},
	{Parent: "lock-convoy", Children: []string{"retry-storm", "budget-exceeded"}, Scope: Apart,
		Why: "those who wait in a convoy ask the origin for nothing"},
	{Parent: "stale-overwrite", Scope: Apart,
		Why: "a value that is wrong stays wrong when the load is gone: somebody has to repair it"},
	{Parent: "lock-lost", Scope: Apart,
		Why: "a lock that is too short stays too short, and its time to live is to be changed in daylight"},
	{Parent: "expiry-forecast", Scope: Apart,
		Why: "it tells of what is still to come, and can still be prevented"},
	{Parent: "delta-poisoning", Scope: Apart,
		Why: "a poisoned recompute time is a trouble of its own until it is written over, whatever made it"},
	{Parent: "early-refresh-excess", Scope: Apart,
		Why: "how early refresh is tuned is a task for tomorrow, and must not vanish with tonight's page"},
	{Parent: "early-refresh-ineffective", Scope: Apart,
		Why: "how early refresh is tuned is a task for tomorrow, and must not vanish with tonight's page"},
	{Parent: "underdosed-jitter", Scope: Apart,
		Why: "how wide the jitter is is a task for tomorrow, and must not vanish with tonight's page"},
	{Parent: "vulnerable", Scope: Apart,
		Why: "it is a property of the system, there before a loop and after it"},
}

// Precedence returns the ids of all detectors, causes before what they cause:
// no parent of a [Relation] comes after a child.
func Precedence() []string { return slices.Clone(precedence) }

// Relations returns how findings of every two detectors go with each other. A
// row that is Apart and has no children is about all detectors no other row
// relates its parent to. The slices of children are shared: do not change them.
func Relations() []Relation { return slices.Clone(relations) }

package detectors

import "fmt"

// Config holds the configuration of every detector, by its id. The zero value
// gives each its defaults.
type Config struct {
	BudgetExceeded          BudgetExceededConfig          `yaml:"budget-exceeded,omitempty"`
	CoalescingBypass        CoalescingBypassConfig        `yaml:"coalescing-bypass,omitempty"`
	DeltaPoisoning          DeltaPoisoningConfig          `yaml:"delta-poisoning,omitempty"`
	EarlyRefreshExcess      EarlyRefreshExcessConfig      `yaml:"early-refresh-excess,omitempty"`
	EarlyRefreshIneffective EarlyRefreshIneffectiveConfig `yaml:"early-refresh-ineffective,omitempty"`
	ExpiryForecast          ExpiryForecastConfig          `yaml:"expiry-forecast,omitempty"`
	HotKeyExpiry            HotKeyExpiryConfig            `yaml:"hot-key-expiry,omitempty"`
	LockConvoy              LockConvoyConfig              `yaml:"lock-convoy,omitempty"`
	LockLost                LockLostConfig                `yaml:"lock-lost,omitempty"`
	MassInvalidation        MassInvalidationConfig        `yaml:"mass-invalidation,omitempty"`
	MetastableLoop          MetastableLoopConfig          `yaml:"metastable-loop,omitempty"`
	OrphanedLock            OrphanedLockConfig            `yaml:"orphaned-lock,omitempty"`
	Overload                OverloadConfig                `yaml:"overload,omitempty"`
	Penetration             PenetrationConfig             `yaml:"penetration,omitempty"`
	ProcessLocalCoalescing  ProcessLocalCoalescingConfig  `yaml:"process-local-coalescing,omitempty"`
	RetryStorm              RetryStormConfig              `yaml:"retry-storm,omitempty"`
	StaleOverwrite          StaleOverwriteConfig          `yaml:"stale-overwrite,omitempty"`
	SynchronizedExpiry      SynchronizedExpiryConfig      `yaml:"synchronized-expiry,omitempty"`
	UnderdosedJitter        UnderdosedJitterConfig        `yaml:"underdosed-jitter,omitempty"`
	Vulnerable              VulnerableConfig              `yaml:"vulnerable,omitempty"`
}

// entry is one detector there is.
type entry struct {
	doc Doc
	new func(Config) (Detector, error)
}

// entries lists every detector, by id.
func entries() []entry {
	return []entry{
		{budgetExceededDoc, func(c Config) (Detector, error) { return NewBudgetExceeded(c.BudgetExceeded) }},
		{coalescingBypassDoc, func(c Config) (Detector, error) { return NewCoalescingBypass(c.CoalescingBypass) }},
		{deltaPoisoningDoc, func(c Config) (Detector, error) { return NewDeltaPoisoning(c.DeltaPoisoning) }},
		{earlyRefreshExcessDoc, func(c Config) (Detector, error) { return NewEarlyRefreshExcess(c.EarlyRefreshExcess) }},
		{earlyRefreshIneffectiveDoc, func(c Config) (Detector, error) { return NewEarlyRefreshIneffective(c.EarlyRefreshIneffective) }},
		{expiryForecastDoc, func(c Config) (Detector, error) { return NewExpiryForecast(c.ExpiryForecast) }},
		{hotKeyExpiryDoc, func(c Config) (Detector, error) { return NewHotKeyExpiry(c.HotKeyExpiry) }},
		{lockConvoyDoc, func(c Config) (Detector, error) { return NewLockConvoy(c.LockConvoy) }},
		{lockLostDoc, func(c Config) (Detector, error) { return NewLockLost(c.LockLost) }},
		{massInvalidationDoc, func(c Config) (Detector, error) { return NewMassInvalidation(c.MassInvalidation) }},
		{metastableLoopDoc, func(c Config) (Detector, error) { return NewMetastableLoop(c.MetastableLoop) }},
		{orphanedLockDoc, func(c Config) (Detector, error) { return NewOrphanedLock(c.OrphanedLock) }},
		{overloadDoc, func(c Config) (Detector, error) { return NewOverload(c.Overload) }},
		{penetrationDoc, func(c Config) (Detector, error) { return NewPenetration(c.Penetration) }},
		{processLocalCoalescingDoc, func(c Config) (Detector, error) { return NewProcessLocalCoalescing(c.ProcessLocalCoalescing) }},
		{retryStormDoc, func(c Config) (Detector, error) { return NewRetryStorm(c.RetryStorm) }},
		{staleOverwriteDoc, func(c Config) (Detector, error) { return NewStaleOverwrite(c.StaleOverwrite) }},
		{synchronizedExpiryDoc, func(c Config) (Detector, error) { return NewSynchronizedExpiry(c.SynchronizedExpiry) }},
		{underdosedJitterDoc, func(c Config) (Detector, error) { return NewUnderdosedJitter(c.UnderdosedJitter) }},
		{vulnerableDoc, func(c Config) (Detector, error) { return NewVulnerable(c.Vulnerable) }},
	}
}

// All returns a fresh instance of every detector, in the order of their ids. It
// fails if a configuration is out of range, and names the field.
func All(c Config) ([]Detector, error) {
	var all []Detector
	for _, e := range entries() {
		d, err := e.new(c)
		if err != nil {
			return nil, fmt.Errorf("configure %s: %w", e.doc.ID, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// Docs returns what every detector says of itself, in the order of their ids.
func Docs() []Doc {
	var docs []Doc
	for _, e := range entries() {
		docs = append(docs, e.doc)
	}
	return docs
}

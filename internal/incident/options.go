package incident

import (
	"fmt"
	"log/slog"
	"time"
)

// Options configure a [Manager]. The zero value works.
type Options struct {
	// Regroup is how long after its end an incident is reopened, and not a
	// new one opened, if its cause comes back; at most 24 h. Default 30 min.
	// Negative: never.
	Regroup time.Duration
	// ConfirmWithin is how long an incident resumed from the state file waits
	// for a finding to confirm it, counted from the first Apply; 1 s to 24 h.
	// Default 15 min.
	ConfirmWithin time.Duration
	// Keep is how many closed incidents are remembered, 1 to 100,000. An
	// incident forgotten cannot be reopened. Default 1000.
	Keep int
	// MaxOpen is how many findings may hold at once, as incidents or as
	// children of one, 1 to 100,000. Beyond, a finding takes the place of a
	// less severe one or is dropped and counted. Default 10,000. Each costs
	// about 3 kB.
	MaxOpen int
	// StateFile is where incidents are kept across restarts; its folder is
	// made if it is not there. Writing it never delays Apply. Two managers
	// must not share one. Default: none, and a restart forgets everything.
	StateFile string
	// Listeners hear of changes, in this order. They hear of incidents
	// resumed from the state file before New returns.
	Listeners []Listener
	// Logger gets the troubles with the state file. Default: nobody.
	Logger *slog.Logger
}

const (
	defaultRegroup, maxRegroup                 = 30 * time.Minute, 24 * time.Hour
	minConfirm, defaultConfirm, maxConfirm     = time.Second, 15 * time.Minute, 24 * time.Hour
	defaultKeep, defaultMaxOpen, maxRemembered = 1000, 10_000, 100_000
)

func (o Options) withDefaults() Options {
	if o.Regroup == 0 {
		o.Regroup = defaultRegroup
	}
	if o.ConfirmWithin == 0 {
		o.ConfirmWithin = defaultConfirm
	}
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	if o.MaxOpen == 0 {
		o.MaxOpen = defaultMaxOpen
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.Regroup > maxRegroup:
		return fmt.Errorf("option Regroup is %v: want at most %v, or negative for never", o.Regroup, maxRegroup)
	case o.ConfirmWithin < minConfirm || o.ConfirmWithin > maxConfirm:
		return fmt.Errorf("option ConfirmWithin is %v: want %v to %v", o.ConfirmWithin, minConfirm, maxConfirm)
	case o.Keep < 1 || o.Keep > maxRemembered:
		return fmt.Errorf("option Keep is %d: want 1 to %d", o.Keep, maxRemembered)
	case o.MaxOpen < 1 || o.MaxOpen > maxRemembered:
		return fmt.Errorf("option MaxOpen is %d: want 1 to %d", o.MaxOpen, maxRemembered)
	}
	for i, l := range o.Listeners {
		if l == nil {
			return fmt.Errorf("option Listeners[%d] is nil", i)
		}
	}
	return nil
}

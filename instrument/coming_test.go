package instrument_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// expected bins expiries one by one, as seen at now.
func expected(now signal.Nanos, expiries map[string]signal.Nanos) []signal.ExpiryBin {
	var all []signal.ExpiryBin
	for _, at := range expiries {
		if bin, ok := signal.BinExpiry(now, at); ok {
			bin.Keys = 1
			all = append(all, bin)
		}
	}
	if all == nil {
		return nil
	}
	return signal.MergeExpiries(all, nil)
}

func TestComingExpiriesAreThoseOfTheLatestValues(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	due := map[string]signal.Nanos{} // of what is there
	ttls := []time.Duration{time.Millisecond, 900 * time.Millisecond, 3 * time.Second, 4 * time.Minute, 6 * time.Minute, 59 * time.Minute, 2 * time.Hour}
	for range 2000 {
		for range rng.IntN(5) {
			key, ttl := fmt.Sprint(rng.IntN(50)), ttls[rng.IntN(len(ttls))]+time.Duration(rng.Int64N(int64(5*time.Second)))
			_, there := due[key]
			switch rng.IntN(8) {
			case 0:
				m.Invalidate(key)
				delete(due, key)
			case 1:
				m.Store(key, instrument.Expiry{None: true})
				delete(due, key)
			case 2:
				m.Touch(key, instrument.Expiry{TTL: ttl})
				if there { // or it may be one that nobody knows to be there
					due[key] = signal.At(c.Now().Add(ttl))
				} else {
					m.Invalidate(key)
				}
			default:
				m.Store(key, instrument.Expiry{TTL: ttl})
				due[key] = signal.At(c.Now().Add(ttl))
			}
			if rng.IntN(4) == 0 {
				m.FlushUrgent()
			}
			c.Step(time.Duration(rng.Int64N(int64(time.Second))))
		}
		c.Step(time.Duration(rng.Int64N(int64(20 * time.Second))))
		m.Flush()
		now := signal.At(c.Now())
		if diff := cmp.Diff(expected(now, due), r.vitals[len(r.vitals)-1].Expiries); diff != "" {
			t.Fatalf("expiries counted one by one (-) and those told (+):\n%s", diff)
		}
	}
}

func TestAKeyThatMadeRoomForAnotherIsNoLongerAwaited(t *testing.T) {
	const most = 64
	m, r, c := newMonitor(t, instrument.Options{MaxKeys: most})
	for i := range 20 * most {
		m.Store(fmt.Sprint(i), instrument.Expiry{TTL: time.Hour})
		m.Flush()
		c.Step(time.Millisecond)
	}
	m.Flush()
	v, n := r.vitals[len(r.vitals)-1], uint64(0)
	for _, bin := range v.Expiries {
		n += uint64(bin.Keys)
	}
	if n != v.Tracked || n > most {
		t.Errorf("%d keys are tracked, at most %d, and %d are said to expire", v.Tracked, most, n)
	}
}

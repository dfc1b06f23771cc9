package memcached

import (
	"testing"
	"time"
)

func TestBudgetAllowsABurstAndThenItsRateOnAverage(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	b := newBudget(100, now)
	spent := 0
	for range 1000 { // a hundred seconds of ten times the rate
		now = now.Add(100 * time.Millisecond)
		if !b.renew(now) {
			continue
		}
		for range 100 {
			spent++
			if !b.spend() {
				break
			}
		}
	}
	const burst = 500
	if most := 100*100 + burst + 100; spent > most || spent < 100*100-burst {
		t.Errorf("spent %d lines in 100 s, want about 10,000 and at most %d", spent, most)
	}
}

func TestBudgetIsWholeBeforeItIsUsedAgain(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	b := newBudget(100, now)
	for b.spend() {
	}
	for i := range 5 {
		if b.renew(now) {
			t.Fatalf("used again after %d s, want 5", i)
		}
		now = now.Add(time.Second)
	}
	if now = now.Add(time.Second); !b.renew(now) {
		t.Error("not used again after 6 s")
	}
}

func TestBudgetDoesNotMindLessThanItsRate(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	b := newBudget(100, now)
	for range 1000 {
		now = now.Add(time.Second)
		if !b.renew(now) {
			t.Fatal("used up by its own rate")
		}
		for range 100 {
			b.spend()
		}
	}
}

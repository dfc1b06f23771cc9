package live

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
)

// pollEvery is how often a process looks at a lock that readers of it wait for:
// once for all of them, whatever their number.
const pollEvery = 10 * time.Millisecond

// waitingRoom is where the readers of one process wait for locks.
type waitingRoom struct {
	mu     sync.Mutex
	queues map[string][]chan sight // by the text of keys; there while somebody looks
}

// sight is what a reader who waits is told of: that there is a value, or that the
// lock is free.
type sight uint8

const (
	sightValue sight = iota
	sightFree
)

// enter puts somebody who waits for e at the end of its queue, or at its head. It
// reports whether nobody looks at e's lock yet.
func (w *waitingRoom) enter(e *entry, c chan sight, head bool) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue, looking := w.queues[e.text]
	at := len(queue)
	if head {
		at = 0
	}
	if w.queues == nil {
		w.queues = map[string][]chan sight{}
	}
	w.queues[e.text] = slices.Insert(queue, at, c)
	return !looking
}

// leave takes somebody out, who may have been called already.
func (w *waitingRoom) leave(e *entry, c chan sight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if queue, looking := w.queues[e.text]; looking {
		w.queues[e.text] = slices.DeleteFunc(queue, func(x chan sight) bool { return x == c })
	}
}

// call tells those who wait for e what there is: all of a value, and the first of
// a lock that is free.
func (w *waitingRoom) call(e *entry, s sight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := w.queues[e.text]
	n := len(queue)
	if s == sightFree {
		n = min(n, 1)
	}
	for _, c := range queue[:n] {
		c <- s // it has room, and nobody is called twice
	}
	w.queues[e.text] = slices.Delete(queue, 0, n)
}

// closed ends the looking at e's lock if nobody waits any more, and reports
// whether it did.
func (w *waitingRoom) closed(e *entry) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queues[e.text]) > 0 {
		return false
	}
	delete(w.queues, e.text)
	return true
}

// park waits until there is a value or the lock is free, and reports whether q
// has a value.
func (q *request) park() bool {
	e, p := q.e, q.p
	wait := q.monitor().LockWait(e.key)
	p.r.tell(func(now int64, a *rig.Account) {
		e.holds.waits++
		a.Parked(now, e.c.name, e.text, e.holds.waits)
	})
	served, locked := q.attend()
	wait.Done()
	p.r.tell(func(now int64, a *rig.Account) {
		e.holds.waits--
		a.Unparked(now, e.c.name, e.text, e.holds.waits)
	})
	switch {
	case served:
		return q.lookAgain()
	case locked:
		return q.locked()
	default:
		return false
	}
}

// attend waits for q's turn: there is a value, or q has the lock. Neither is true
// if it gave up.
func (q *request) attend() (served, locked bool) {
	e, p := q.e, q.p
	called := make(chan sight, 1)
	patience := time.NewTimer(e.c.cfg.Client.Timeout)
	defer patience.Stop()
	for again := false; ; again = true {
		if p.room.enter(e, called, again) {
			p.r.work.Go(func() { p.watch(e) })
		}
		select {
		case s := <-called:
			if s == sightValue {
				return true, false
			}
			if q.take() {
				return false, true
			}
		case <-patience.C:
			p.room.leave(e, called)
			return false, false
		case <-p.ctx.Done():
			p.room.leave(e, called)
			return false, false
		}
	}
}

// watch looks at e's lock as long as somebody in p waits for it.
func (p *process) watch(e *entry) {
	for pause(p.ctx, pollEvery) && !p.room.closed(e) {
		free, fresh, err := p.look(e)
		switch {
		case err != nil:
			p.r.fail(p.ctx, "wait for a lock", err)
		case fresh:
			p.room.call(e, sightValue)
		case free:
			p.room.call(e, sightFree)
		}
	}
}

// look asks whether e's lock is free and whether there is a fresh value: in that
// order, or a holder that stores and releases in between would be missed.
func (p *process) look(e *entry) (free, fresh bool, err error) {
	pipe := p.plain.Pipeline()
	lock := pipe.Exists(p.ctx, e.lock)
	value := pipe.Get(p.ctx, e.key)
	if _, err := pipe.Exec(p.ctx); err != nil && !errors.Is(err, redis.Nil) {
		return false, false, err
	}
	if raw, err := value.Result(); err == nil {
		v, err := parseEnvelope(raw)
		if err != nil {
			return false, false, err
		}
		fresh = v.expiry > p.r.now()
	}
	return lock.Val() == 0, fresh, nil
}

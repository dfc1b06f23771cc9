package sim

// action is something that happens at an instant.
type action interface{ run(s *Sim) }

// event is an action that is due. Events of one instant run in the order they
// were scheduled in.
type event struct {
	at  int64 // since the start
	seq uint64
	do  action
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// agenda is a heap of four children a node: shallower than one of two, and it
// keeps siblings in one or two cache lines. It does not allocate once grown.
type agenda struct {
	events []event
	seq    uint64
}

const arity = 4

func (a *agenda) push(at int64, do action) {
	a.seq++
	e := event{at, a.seq, do}
	a.events = append(a.events, e)
	i := len(a.events) - 1
	for i > 0 {
		up := (i - 1) / arity
		if !e.before(&a.events[up]) {
			break
		}
		a.events[i] = a.events[up]
		i = up
	}
	a.events[i] = e
}

// pop removes the event that is due first. There must be one.
func (a *agenda) pop() event {
	first := a.events[0]
	last := len(a.events) - 1
	e := a.events[last]
	a.events[last] = event{}
	a.events = a.events[:last]
	if last == 0 {
		return first
	}
	i := 0
	for {
		child := i*arity + 1
		if child >= last {
			break
		}
		least := child
		for c := child + 1; c < min(child+arity, last); c++ {
			if a.events[c].before(&a.events[least]) {
				least = c
			}
		}
		if !a.events[least].before(&e) {
			break
		}
		a.events[i] = a.events[least]
		i = least
	}
	a.events[i] = e
	return first
}

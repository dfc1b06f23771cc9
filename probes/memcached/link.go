package memcached

import "context"

// link is a connection to one server that is made when it is needed, and made
// anew after it broke. It is for one goroutine at a time.
type link struct {
	addr string
	o    Options
	c    *conn // nil if there is none
}

// open returns the connection.
func (l *link) open(ctx context.Context) (*conn, error) {
	if l.c != nil {
		return l.c, nil
	}
	c, err := dial(ctx, l.addr, l.o)
	if err != nil {
		return nil, err
	}
	l.c = c
	return c, nil
}

// close lets go of the connection, if there is one.
func (l *link) close() error {
	if l.c == nil {
		return nil
	}
	err := l.c.Close()
	l.c = nil
	return err
}

// drop closes a connection on which err happened, after which it is no longer
// known what comes next on it, and returns err.
func (l *link) drop(err error) error {
	_ = l.close() // err is worth more than what closing says
	return err
}

// askStats asks for the server's counters.
func (l *link) askStats(ctx context.Context) (counters, error) {
	c, err := l.open(ctx)
	if err != nil {
		return counters{}, err
	}
	n, err := c.askStats(ctx)
	if err != nil {
		return counters{}, l.drop(err)
	}
	return n, nil
}

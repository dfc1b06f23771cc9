package instrument

import "container/heap"

// topK finds the heaviest of an unbounded stream of names in bounded memory, by
// the Space-Saving algorithm (Metwally, Agrawal, El Abbadi, ICDT 2005): with m
// counters and a total weight N, an estimate is between the true weight and
// that plus N/m, and every name heavier than N/m has a counter.
type topK struct {
	size   int
	byName map[string]*counted
	heap   countedHeap // lightest first
}

type counted struct {
	name  string
	n     uint64 // estimate, never too low
	err   uint64 // by how much it may be too high
	index int
}

func newTopK(size int) *topK { return &topK{size: size, byName: map[string]*counted{}} }

// offer adds weight n to name.
func (t *topK) offer(name string, n uint64) {
	if n == 0 {
		return
	}
	c := t.byName[name]
	switch {
	case c != nil:
		c.n += n
		heap.Fix(&t.heap, c.index)
	case len(t.heap) < t.size:
		c = &counted{name: name, n: n}
		t.byName[name] = c
		heap.Push(&t.heap, c)
	default:
		c = t.heap[0]
		delete(t.byName, c.name)
		c.name, c.err, c.n = name, c.n, c.n+n
		t.byName[name] = c
		heap.Fix(&t.heap, 0)
	}
}

// heaviest returns the wanted name with the greatest weight that is certain, or
// an empty string.
func (t *topK) heaviest(wanted func(name string) bool) string {
	best, most := "", uint64(0)
	for _, c := range t.heap {
		sure := c.n - c.err
		if (sure > most || sure == most && c.name < best) && wanted(c.name) {
			best, most = c.name, sure
		}
	}
	return best
}

// countedHeap implements heap.Interface.
type countedHeap []*counted

func (h countedHeap) Len() int           { return len(h) }
func (h countedHeap) Less(i, j int) bool { return h[i].n < h[j].n }
func (h countedHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *countedHeap) Push(x any) {
	c := x.(*counted)
	c.index = len(*h)
	*h = append(*h, c)
}

func (h *countedHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}

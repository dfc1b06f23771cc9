package census

import "strings"

// maxGroups bounds how many groups are known at once.
const maxGroups = 100

// noGroup is the number of [Other].
const noGroup = 0

// names gives groups numbers, and forgets those no key is left of. The zero
// value is ready.
type names struct {
	byName map[string]uint16
	groups []named // by number, less one
	free   []uint16
}

type named struct {
	name string
	keys uint64 // that have the number
}

// number returns the number of a group and counts one key more that has it. A
// group there is no room for counts as [Other].
func (n *names) number(name string) uint16 {
	id, ok := n.byName[name]
	if !ok {
		if id = n.make(name); id == noGroup {
			return noGroup
		}
	}
	n.groups[id-1].keys++
	return id
}

func (n *names) make(name string) uint16 {
	if name == "" || name == Other {
		return noGroup
	}
	var id uint16
	switch {
	case len(n.free) > 0:
		id = n.free[len(n.free)-1]
		n.free = n.free[:len(n.free)-1]
	case len(n.groups) < maxGroups:
		n.groups = append(n.groups, named{})
		id = uint16(len(n.groups))
	default:
		return noGroup
	}
	if n.byName == nil {
		n.byName = map[string]uint16{}
	}
	name = strings.Clone(name) // it may be part of a key, which is not to be kept
	n.byName[name] = id
	n.groups[id-1] = named{name: name}
	return id
}

// release counts so many keys less.
func (n *names) release(id uint16, keys uint64) {
	if id == noGroup {
		return
	}
	g := &n.groups[id-1]
	if g.keys -= min(keys, g.keys); g.keys == 0 {
		delete(n.byName, g.name)
		n.free = append(n.free, id)
	}
}

// name returns the name of a number.
func (n *names) name(id uint16) string {
	if id == noGroup {
		return Other
	}
	return n.groups[id-1].name
}

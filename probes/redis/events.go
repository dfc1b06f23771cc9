package redis

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/probes/keyspace"
)

// keyEvents are the events that are listened to, and what they mean. Commands
// that read, and those of queues and streams, raise none of them.
var keyEvents = map[string]keyspace.Kind{
	"keymiss":     keyspace.Miss,
	"set":         keyspace.Store, // SETEX, SETNX, MSET, GETSET and GETEX too
	"restore":     keyspace.Store,
	"copy_to":     keyspace.Store,
	"rename_to":   keyspace.Store,
	"move_to":     keyspace.Store,
	"del":         keyspace.Delete, // UNLINK and GETDEL too
	"rename_from": keyspace.Delete,
	"move_from":   keyspace.Delete,
	"expire":      keyspace.Expire,
	"expired":     keyspace.Expired,
	"evicted":     keyspace.Evicted,

	"sunionstore": keyspace.Store,
	"sinterstore": keyspace.Store,
	"sdiffstore":  keyspace.Store,
	"sortstore":   keyspace.Store,
	"zunionstore": keyspace.Store,
	"zinterstore": keyspace.Store,
	"zdiffstore":  keyspace.Store,
	"zrangestore": keyspace.Store,

	// A value may be made of many of these.
	"append":       keyspace.Change,
	"setrange":     keyspace.Change,
	"setbit":       keyspace.Change,
	"incrby":       keyspace.Change,
	"incrbyfloat":  keyspace.Change,
	"hset":         keyspace.Change,
	"hincrby":      keyspace.Change,
	"hincrbyfloat": keyspace.Change,
	"rpush":        keyspace.Change,
	"lpush":        keyspace.Change,
	"sadd":         keyspace.Change,
	"zadd":         keyspace.Change,
	"zincr":        keyspace.Change,
}

// channelPrefix returns what comes before the name of an event in the name of
// the channel it is published on.
func channelPrefix(database int) string { return fmt.Sprintf("__keyevent@%d__:", database) }

// channels returns those to subscribe to. Each has a subscription of its own: a
// pattern would have to be compared with every event of the server, and would
// bring those of queues too.
func channels(database int) []string {
	var names []string
	for _, e := range slices.Sorted(maps.Keys(keyEvents)) {
		names = append(names, channelPrefix(database)+e)
	}
	return names
}

// kindOf returns what an event on that channel means; false if it is none of
// ours.
func kindOf(channel []byte) (keyspace.Kind, bool) {
	i := bytes.IndexByte(channel, ':')
	k, ok := keyEvents[string(channel[i+1:])]
	return k, ok
}

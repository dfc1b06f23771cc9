// Package goredis watches a cache through go-redis: add a [Hook] to a client,
// and an [instrument.Monitor] learns of every lookup, miss, store, deletion and
// lock, with no further code.
//
//	hook, err := goredis.NewHook(monitor, goredis.Options{})
//	...
//	rdb.AddHook(hook)
//
// Add the hook once, to the client the application calls: a *redis.Client
// (behind Sentinel or not), a *redis.ClusterClient or a *redis.Ring. It then
// sees each command once, whatever retries, redirections and fan-out the client
// does on its own, and it follows the client into pipelines, transactions and
// connections. A hook added to the nodes of a cluster or ring as well (their
// OnNewNode) would count everything twice.
//
// # What counts as what
//
// Lookups, as a hit, a miss or an error:
//
//   - GET, GETEX, HGET; and each key of MGET. A nil reply is a miss.
//   - HMGET: one lookup of the hash, a miss if every field asked for is nil. A
//     hash that lacks one of them is there: an object may have optional fields.
//   - HGETALL: a miss if the hash is empty.
//   - Anything else that went wrong is an error, never a miss: a cancelled
//     context, a time-out, a WRONGTYPE.
//
// EXISTS, TTL, STRLEN and GETRANGE are no lookups: they fetch no value, or
// cannot tell an empty one from none. Neither is GETDEL, which takes the value
// away: nobody reads a cache like that.
//
// Stores, if the server says the value was written: SET in every form, SETEX,
// PSETEX, SETNX, GETSET, MSET, MSETNX, MSETEX, HSET, HMSET, HSETNX. What a
// write does to a hash's expiry is not known. A store that follows a miss of
// its key is taken as the end of a recompute; see
// [instrument.Monitor.ObserveStore]. One refused by its NX or XX condition is
// not seen, though its recompute was in vain.
//
// Changes of a value's life: EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT, PERSIST, and
// GETEX with an expiry. An expiry that is not in the future deletes the value.
//
// Deletions: DEL, UNLINK, DELEX, GETDEL, if they removed something. When the
// reply says that nothing was there, the value had gone by itself, and saying
// otherwise would blame its next miss on the wrong cause. If only some of
// several keys were there, all count: the reply does not say which.
//
// # Locks
//
// SET with NX and an expiry is an attempt to take a lock, and so is SET NX on
// whatever [Options.LockKey] names. Without LockKey it is a guess, and a key
// that was missed or written otherwise shortly before is not a lock: it is
// being filled.
//
// A lock that was taken is held until a DEL, UNLINK or DELEX of its key, or a
// script called with the key as KEYS[1] and the token it was taken with as its
// only argument. A script with the token and more arguments renews the lock, as
// does EXPIRE. The lock was lost if a script or DELEX with the token finds it
// gone, whatever the clock says; or if a DEL, which compares nothing, comes
// after its expiry or finds nothing. A hold nobody ends is given up after twice
// the lock's life. It counts as lost only if LockKey names the key: keys set
// once and left to expire (rate limits, once-only marks) look just like it.
//
// Waiting for a lock is not visible here; see [instrument.Monitor.LockWait].
//
// # What is not seen
//
// Raw replies (DoRaw, DoRawWriteTo), MULTI sent by hand, scripts and functions
// but for locks, other data types and modules, the commands for single fields'
// expiry (HSETEX, HGETEX), RENAME, COPY, RESTORE, FLUSHDB.
package goredis

package goredis

// op is a command this package knows. Lookups come first; see [op.lookup].
type op uint8

const (
	opOther op = iota
	opGet
	opGetEx
	opMGet
	opHGet
	opHMGet
	opHGetAll
	opSet
	opSetEx
	opPSetEx
	opSetNX
	opGetSet
	opMSet
	opMSetNX
	opMSetEx
	opHSet
	opHSetNX
	opHDel
	opExpire
	opPExpire
	opExpireAt
	opPExpireAt
	opPersist
	opDel
	opDelEx
	opScript
)

// longestName bounds the names [opByName] knows.
const longestName = len("pexpireat")

// opOf returns the command arg names, in any case. It does not allocate for a
// string, which is what every method of a client sends.
func opOf(arg any) op {
	name, ok := arg.(string)
	if !ok {
		if name, ok = text(arg); !ok {
			return opOther
		}
	}
	if o := opByName(name); o != opOther || len(name) > longestName {
		return o
	}
	var lower [longestName]byte
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return opByName(string(lower[:len(name)]))
}

// opByName returns the command of that lower-case name.
func opByName(name string) op {
	switch name {
	case "get":
		return opGet
	case "getex":
		return opGetEx
	case "mget":
		return opMGet
	case "hget":
		return opHGet
	case "hmget":
		return opHMGet
	case "hgetall":
		return opHGetAll
	case "set":
		return opSet
	case "setex":
		return opSetEx
	case "psetex":
		return opPSetEx
	case "setnx":
		return opSetNX
	case "getset":
		return opGetSet
	case "mset":
		return opMSet
	case "msetnx":
		return opMSetNX
	case "msetex":
		return opMSetEx
	case "hset", "hmset":
		return opHSet
	case "hsetnx":
		return opHSetNX
	case "hdel":
		return opHDel
	case "expire":
		return opExpire
	case "pexpire":
		return opPExpire
	case "expireat":
		return opExpireAt
	case "pexpireat":
		return opPExpireAt
	case "persist":
		return opPersist
	case "del", "unlink", "getdel":
		return opDel
	case "delex":
		return opDelEx
	case "eval", "evalsha":
		return opScript
	}
	return opOther
}

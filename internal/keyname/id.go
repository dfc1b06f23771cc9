package keyname

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Sum returns the SHA-256 of salt, a zero byte and key. Who shares the salt gets
// the same sum for the same key; without a salt, a key that can be guessed can
// be found from its sum by trying.
func Sum(salt, key string) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(salt))
	h.Write([]byte{0})
	h.Write([]byte(key))
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

// ID returns the id of the key with the given sum: its first 64 bits.
func ID(sum [sha256.Size]byte) signal.KeyID {
	return signal.KeyID(binary.BigEndian.Uint64(sum[:]))
}

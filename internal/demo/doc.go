// Package demo runs a fleet of application instances against a real cache and
// an origin with a budget, and keeps its own account of what it did, so that
// what the exporter says can be held against the truth.
//
// The instances are what applications are: each has its own go-redis client
// with the goredis hook, its own monitor, and its own OTLP connection. Only the
// origin is made up: it takes a fixed time and counts who asks.
package demo

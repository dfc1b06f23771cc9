// Package benchmarks measures the project's client hook against others of its
// kind. It is a module of its own, so that what it compares with stays out of
// the dependencies of whoever imports the instrumentation. See README.md.
package benchmarks

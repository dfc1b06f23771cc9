// Package docgen writes the documents that are made from code: what metrics,
// attributes and detectors there are. `make generate` runs it.
package docgen

//go:generate go run ./gen ../..

// notice heads every document made here. Markdown does not show it.
const notice = "<!-- Made from code by `make generate`: change the code, not this file. -->\n"

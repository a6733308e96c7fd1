// Package quickstart has the programs that the documentation shows. Each is a file of its own,
// excluded from the build. Package test/contract runs them.
package quickstart

import "embed"

// Programs are the files of the programs.
//
//go:embed create.* receive.* Create.java Receive.java sdk_*
var Programs embed.FS

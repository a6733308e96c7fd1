// Package clients holds programs, and no code of the module: each creates a session, reads
// it and parses events with the client that a code generator makes from openapi.yaml. The
// test that runs the generators and the programs is test/contract/clients_test.go. install,
// pom.xml, requirements.txt and package.json pin the generators; `make deps/test` fetches
// them.
package clients

// Package harness runs the finished programs for the suites under test: real processes of
// the binary that `go build` makes, on real servers. Its clients send requests as
// integrators, citizens, operators and agencies do.
//
//   - Up is one `quittance-dev up`, with all parts that a developer has.
//   - Stack is servers, and one process for each instance of a role. A suite may kill
//     them and start them again.
//   - Browse runs a script of test/tools/browser in Chromium.
//   - Operator runs commands against an Up. OpenTopics reads the topics of a Stack.
//
// The assertions are in the suites. The harness fails a test only when a part of it does
// not work. What benchmarks need too is in dev/bench and dev/stack/program.
package harness

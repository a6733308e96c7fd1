// Package harness runs the finished programs for the suites under test: real
// processes of the binary that `go build` makes, on real servers, with clients that
// speak to them as integrators, citizens, operators and agencies do.
//
//   - Up is one `quittance-dev up`, with all that a developer has around it.
//   - Stack is servers and processes, one for each instance of a role, that a suite
//     may kill and start again.
//   - Browse runs a script of test/tools/browser in Chromium.
//   - Operator types commands beside an Up. Topics reads what a Stack has in Kafka.
//
// A suite keeps its assertions; the harness only fails a test when the machinery
// itself does not work.
package harness

// Package program runs the finished programs, quittance and quittance-dev, as
// processes of this machine. Benchmarks and test suites use it.
//
//   - Process is a role that can be killed and started again.
//   - Up is a whole `quittance-dev up`.
//
// Every process ends when the process that started it ends.
package program

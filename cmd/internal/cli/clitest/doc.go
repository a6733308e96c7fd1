// Package clitest runs single commands in tests.
package clitest

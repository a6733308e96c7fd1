// Package linear holds histories of concurrent requests against a sequential model
// of the service, and sees a broken build caught.
package linear

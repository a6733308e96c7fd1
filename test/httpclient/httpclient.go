// Package httpclient has the HTTP client of tests. The client of net/http is not for them:
// when an httptest.Server closes, it also closes the connections of net/http's transport,
// which other tests of the process use at that moment.
package httpclient

import "net/http"

// Transport is the transport of Default, for clients that need other settings.
var Transport = &http.Transport{MaxIdleConnsPerHost: 32}

// Default is a client that no test server closes connections of. It has no limit of time:
// requests carry theirs in their context.
var Default = &http.Client{Transport: Transport}

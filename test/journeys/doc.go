// Package journeys pays in a real browser. TestJourneys is one table of journeys: on the
// hosted page with a script and without, and in the demo shop's frame. Then it searches
// the log for secrets. QUITTANCE_JOURNEYS=PATTERN selects journeys by name and plays them on
// every way. The last output of the package is a list of the failed journeys.
//
// TestPagesForEverybody audits every page in every state with axe. TestSDKInBrowser tests
// the SDK and the frame script with a page of the test, TestShopInBrowser the embedded
// checkout in the demo shop. QUITTANCE_SCREENS=write (`make screens`) takes the pictures of all pages.
package journeys

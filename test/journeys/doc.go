// Package journeys pays in a real browser. TestJourneys is one table of journeys,
// each on the hosted page with a script and without and in the demo shop's frame,
// and afterwards a search of the log for what must not stand there.
// TestPagesForEverybody audits every page and state with axe. TestSDKInBrowser holds
// the SDK and the frame's script against a page of its own, TestShopInBrowser the
// embedded checkout against what a shop and its visitors may do beside paying.
// QUITTANCE_SCREENS=write (`make screens`) writes docs/screens.
package journeys
